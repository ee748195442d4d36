#include "server/serve.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "serve") == 0)
        return rv_cmd_serve(argc - 1, argv + 1);
    if (argc == 2 && strcmp(argv[1], "version") == 0) {
        printf("reeve %s\n", RV_VERSION);
        return 0;
    }
    fprintf(stderr, "usage: reeve serve | version\n");
    return 2;
}
