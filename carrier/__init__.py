"""ONE ATTEMPT: facts about one carrier run, never a judgement.  Imports registry alone."""
