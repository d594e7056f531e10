"""What a kiss takes in: its line, signed if asked, and for an answer its address."""

from __future__ import annotations

import hashlib

from dispatch.errors import LineInvalid, NobodyToAnswer
from dispatch.line import MOST_BYTES, line_of_text
from dispatch.result import LineFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.errand import Errand
    from dispatch.house import House
    from dispatch.telling import Telling
    from registry.targets import Config


def take_in(errand: Errand) -> Config:
    """The configuration; from here on the telling of *errand* has its line and its address.

    Raises LineInvalid, ConfigInvalid, and of an answer DeliveryUnknown or NobodyToAnswer.
    """
    order, house, telling = errand.order, errand.house, errand.telling
    _keep(telling, order.take_line())
    config = house.config()
    if order.sign:
        _sign(errand, config)
    if order.reply is not None:
        telling.address = _sender_to_answer(house, order.reply, config)
    return config


def _sender_to_answer(house: House, delivery: str, config: Config) -> str:
    """Who sent *delivery*; a word that somebody may bear as a name one day is nobody's address."""
    from dispatch.sign import can_be_answered
    from dispatch.story import sender_of_delivery

    sender = sender_of_delivery(house, delivery)
    if not can_be_answered(sender, config):
        raise NobodyToAnswer(delivery, sender)
    return sender


def _sign(errand: Errand, config: Config) -> None:
    """Put the header in front of the line; together they have the bounds of a line."""
    from dispatch.sign import signed

    telling = errand.telling
    delivery = str(telling.result.delivery_id)
    line = signed(telling.line, errand.order.sender, delivery, config)
    if len(line) > MOST_BYTES:
        raise LineInvalid(f"the line is longer than {MOST_BYTES} bytes with its header", MOST_BYTES)
    _keep(telling, line_of_text(line.decode()))


def _keep(telling: Telling, line: bytes) -> None:
    telling.line = line
    telling.add(line=LineFacts(bytes=len(line), sha256=hashlib.sha256(line).hexdigest()))
