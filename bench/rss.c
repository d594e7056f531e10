/* Starts a command and prints its peak memory in KiB: a child's peak reads no lower
   than its parent's, so the parent has to be small. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct rusage usage;
  int status;
  pid_t pid = fork();
  if (argc < 2 || pid < 0) return 2;
  if (pid == 0) {
    freopen("/dev/null", "w", stdout);
    execv(argv[1], argv + 1);
    _exit(127);
  }
  wait4(pid, &status, 0, &usage);
  printf("%ld\n", usage.ru_maxrss);
  return status != 0;
}
