/* serve.h - `reeve serve`: options and variables for a server. */
#ifndef RV_SERVER_SERVE_H
#define RV_SERVER_SERVE_H

/* argv[0] is "serve". The exit code. */
int rv_cmd_serve(int argc, char **argv);

#endif
