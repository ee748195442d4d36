/* yaml_priv.h - what parse.c and locate.c share: libyaml's parser over a text. */
#ifndef RV_YAML_YAML_PRIV_H
#define RV_YAML_YAML_PRIV_H

#include "yaml/yaml.h"

#include <yaml.h>

/* Without the byte order mark with which some editors begin a file: no place counts it. */
struct rv_str rv_yaml_unmarked(struct rv_str text);
/* libyaml reads bytes as const unsigned char; the text must outlive the parser. */
bool rv_yaml_open(yaml_parser_t *parser, struct rv_str text);
/* True if the text, after white space, begins like a JSON object or array. */
bool rv_yaml_like_json(struct rv_str text);
/* Line and column (in characters) of a byte. */
void rv_yaml_place(struct rv_str text, size_t offset, uint32_t *ret_line, uint32_t *ret_column);

#endif
