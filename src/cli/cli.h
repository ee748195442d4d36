/* cli.h - the command line: `reeve COMMAND`. */
#ifndef RV_CLI_CLI_H
#define RV_CLI_CLI_H

/* How `reeve serve` is done: argv[0] is "serve". Gives the exit code. */
typedef int (*rv_cli_serve)(int argc, char **argv);

/* The whole of main: finds the command, reads its options, runs it. Gives the exit code (DESIGN 6):
 * 0 done, 1 the task failed or was undone, 2 usage, 3 not found, 4 refused, 5 unreachable,
 * 6 needs an operator. */
int rv_cli_run(int argc, char **argv, rv_cli_serve serve);

#endif
