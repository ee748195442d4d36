/* jq expressions: what each construct and function gives, what it says when it cannot, and what the
 * compiler says. The results were checked against jq 1.6; where it differs from the jq manual
 * (limit(0; f), fractional indices), 1.7 and its manual hold. */
#include "base/limits.h"
#include "expr/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct rv_str variables[] = {{"context", 7}, {"v", 1}};

struct fixture {
    struct rv_arena arena;
    struct rv_arena memory;
    struct rv_buf text;
    struct rv_expr_fault fault;
};

static void fixture_init(struct fixture *f)
{
    rv_arena_init(&f->arena, 0);
    rv_arena_init(&f->memory, RV_EXPRESSION_BYTES_MAX);
    rv_buf_init(&f->text, RV_EXPRESSION_BYTES_MAX);
}

static void fixture_done(struct fixture *f)
{
    rv_arena_done(&f->arena);
    rv_arena_done(&f->memory);
    rv_buf_done(&f->text);
}

static enum rv_err compile(struct fixture *f, struct rv_str text, struct rv_expr **expr)
{
    return rv_expr_compile(&f->arena, text, variables, 2, expr, &f->fault);
}

/* $context is {"user":"u1"} and $v is 42. The result is left as JSON in f->text. */
static enum rv_err evaluate(struct fixture *f, const char *text, const char *input)
{
    struct rv_expr *expr;
    struct rv_json in, value, values[2];
    struct rv_expr_budget budget = {.fuel = RV_FUEL_PER_EXPRESSION};
    enum rv_err err = compile(f, rv_str_of(text), &expr);
    if (err != RV_OK)
        fail_msg("%s: %.*s", text, RV_STR_FMT(f->fault.message));
    assert_int_equal(rv_json_parse(&f->arena, rv_str_of(input), 64, &in, NULL), RV_OK);
    assert_int_equal(rv_json_parse(&f->arena, RV_STR("{\"user\":\"u1\"}"), 64, &values[0], NULL),
                     RV_OK);
    values[1] = rv_json_of_real(42);
    err = rv_expr_eval(expr, &in, values, &budget, &f->memory, &value, &f->fault);
    rv_buf_reset(&f->text);
    if (err == RV_OK)
        rv_json_write(&f->text, &value);
    return err;
}

/* Each row's outputs, as an array. */
static const struct {
    const char *text;
    const char *input;
    const char *outputs;
} results[] = {
    {"[.[]]", "[1,2]", "[[1,2]]"},
    {".a.b.c", "{\"a\":{\"b\":{\"c\":7}}}", "[7]"},
    {".a[\"b\"].c", "{\"a\":{\"b\":{\"c\":7}}}", "[7]"},
    {".\"a\".\"b\"", "{\"a\":{\"b\":1}}", "[1]"},
    {".\"a\\(\"b\")\"", "{\"ab\":1}", "[1]"},
    {".[\"a\",\"b\"]", "{\"a\":1,\"b\":2}", "[1,2]"},
    {".[0],.[-1],.[5]", "[1,2,3]", "[1,3,null]"},
    {".[1:],.[:1],.[1:2],.[-2:],.[:-1]", "[1,2,3]", "[[2,3],[1],[2],[2,3],[1,2]]"},
    {".[1:3]", "\"aébc\"", "[\"éb\"]"},
    {".a[1:][0]", "{\"a\":[1,2,3]}", "[2]"},
    {".[1.7]", "[1,2,3]", "[2]"},
    {".[1.2:2.1]", "[1,2,3]", "[[2,3]]"},
    {"[.[]?]", "1", "[[]]"},
    {"[.[0,1]?]", "null", "[[null,null]]"},
    {"[[.[]|.a?],1]", "[{\"a\":1},2,{\"a\":3}]", "[[[1,3],1]]"},
    {"[..]", "[1,[2,{\"a\":3}]]", "[[[1,[2,{\"a\":3}]],1,[2,{\"a\":3}],2,{\"a\":3},3]]"},
    {"[..|numbers]", "[1,[2,{\"a\":3}]]", "[[1,2,3]]"},
    {"[.[][0,1]]", "[[1,2],[3,4]]", "[[1,3,2,4]]"},
    {"[.[0,1:2,3]]", "[1,2,3,4]", "[[[1,2],[1,2,3],[2],[2,3]]]"},
    {"[1,2|.,10]", "null", "[[1,10,2,10]]"},
    {"1+2*3-4/2%3", "null", "[5]"},
    {"[.[]|-.]", "[1,2]", "[[-1,-2]]"},
    {"-(1,2)", "null", "[-1,-2]"},
    {"\"a\"+\"b\",\"x\"*3,3*\"x\",\"x\"*-1,\"a,b\"/\",\"", "null",
     "[\"ab\",\"xxx\",\"xxx\",null,[\"a\",\"b\"]]"},
    {"[1]+[2],[1,2,1,3]-[1],{a:1}+{b:2},{a:{b:1}}*{a:{c:2}},null+1,1+null", "null",
     "[[1,2],[2,3],{\"a\":1,\"b\":2},{\"a\":{\"b\":1,\"c\":2}},1,1]"},
    {"{a:1,b:2}+{a:3}", "null", "[{\"a\":3,\"b\":2}]"},
    {"5%-3,-5%3,5.9%2.1", "null", "[2,-2,1]"},
    {"[1==1.0,1!=1,\"a\"<\"b\",[]<{},null<false,false<true,true<0,0<\"\",\"\"<[]]", "null",
     "[[true,false,true,true,true,true,true,true,true]]"},
    {"[{a:1,b:2}=={b:2,a:1},{a:1}<{a:2},{a:2}<{b:1},[1,2]<[1,3]]", "null",
     "[[true,true,true,true]]"},
    {"[true,false,null]|map(not)", "null", "[[false,true,true]]"},
    {"[(true,false) and (true,false)]", "null", "[[true,false,false]]"},
    {"[(true,false) or (true,false)]", "null", "[[true,true,false]]"},
    {".a // 5, (null,false,1,2) // 9, empty // 3, (false // false)", "{\"a\":null}",
     "[5,1,2,3,false]"},
    {"if . then 1 else 2 end, if .a then 1 elif .b then 2 else 3 end", "{\"b\":1}", "[1,2]"},
    {"[if (true,false) then 1 else 2 end]", "null", "[[1,2]]"},
    {"[.[] | try error(\"x\") catch .]", "[1]", "[[\"x\"]]"},
    {"try error({a:1}) catch .a", "null", "[1]"},
    {"try error(null) catch .", "null", "[null]"},
    {"[try (1,error(\"x\"),3) catch .]", "null", "[[1,\"x\"]]"},
    {"[.[]|(1/.)?]", "[1,0,2]", "[[1,0.5]]"},
    {"\"a\\(1+1)b\\(\"c\")d\"", "null", "[\"a2bcd\"]"},
    {"[\"\\(1,2) \\(3,4)\"]", "null", "[[\"1 3\",\"2 3\",\"1 4\",\"2 4\"]]"},
    {"@base64 \"x\\(.)y\", @html \"<\\(.)>\", @uri \"q=\\(.)\", @json \"j\\(.)\", @text \"t"
     "\\(.)\"",
     "\"<&é'\\\">\"",
     "[\"xPCbDqSciPg==y\",\"<&lt;&amp;é&apos;&quot;&gt;>\",\"q=%3C%26%C3%A9%27%22%3E\",\"j"
     "\\\"<&é'\\\\\\\">\\\"\",\"t<&é'\\\">\"]"},
    {"@sh \"echo \\(.)\"", "\"it's\"", "[\"echo 'it'\\\\''s'\"]"},
    {"[@base64,(@base64|@base64d)]", "\"hello wörld\"", "[[\"aGVsbG8gd8O2cmxk\",\"hello wörld\"]]"},
    {"@csv,@tsv", "[1,\"a\\\"b\",null,true,\"t\\tx\\\\\"]",
     "[\"1,\\\"a\\\"\\\"b\\\",,true,\\\"t\\tx\\\\\\\"\",\"1\\ta\\\"b\\t\\ttrue\\tt\\\\tx"
     "\\\\\\\\\"]"},
    {"reduce .[] as $x (0; .+$x)", "[1,2,3]", "[6]"},
    {"[reduce range(3) as $x (0,10; .+$x)]", "null", "[[3,13]]"},
    {"reduce .[] as [$a,$b] (0; .+$a*$b)", "[[1,2],[3,4]]", "[14]"},
    {"reduce range(3) as $x (0; empty)", "null", "[null]"},
    {"[foreach .[] as $x (0; .+$x)],[foreach .[] as $x (0; .+$x; [$x,.])]", "[1,2,3]",
     "[[1,3,6],[[1,1],[2,3],[3,6]]]"},
    {"[foreach range(3) as $x (0; .+$x,.+10; [$x,.])]", "null",
     "[[[0,0],[0,10],[1,11],[1,20],[2,22],[2,30]]]"},
    {". as $x|$x.a", "{\"a\":1}", "[1]"},
    {". as {a:$x,b:[$y,{c:$z}]}|[$x,$y,$z]", "{\"a\":1,\"b\":[2,{\"c\":3}]}", "[[1,2,3]]"},
    {". as {$a,\"b\":$c,(\"d\"+\"e\"):$f}|[$a,$c,$f]", "{\"a\":1,\"b\":2,\"de\":3}", "[[1,2,3]]"},
    {". as {$a:[$b]}|[$a,$b]", "{\"a\":[1]}", "[[[1],1]]"},
    {"[.[] as [$a] | $a]", "[[1],[2]]", "[[1,2]]"},
    {"1 as $x|2 as $x|$x", "null", "[2]"},
    {"[1 as $x | [$x,$x+1] | .[]]", "null", "[[1,2]]"},
    {"def f: .+1; f|f", "1", "[3]"},
    {"def f(g): [g,g]; f(.+1)", "1", "[[2,2]]"},
    {"def f($a;$b): $a+$b; [f(1,2;10,20)]", "null", "[[11,21,12,22]]"},
    {"def f(x): x*2; [f(1,2)]", "null", "[[2,4]]"},
    {"def fac: if .<=1 then 1 else .*(.-1|fac) end; fac", "10", "[3628800]"},
    {"def f: def g: 3; g+1; f", "null", "[4]"},
    {"def f(x): def g(y): x+y; g(x); f(.)", "4", "[8]"},
    {"def map2(f): [.[]|f]; map2(.+1)", "[1,2]", "[[2,3]]"},
    {". as $v|def f: $v+1; f", "1", "[2]"},
    {"[label $f|1,break $f,2]", "null", "[[1]]"},
    {"[label $a|label $b|1,break $a,2]", "null", "[[1]]"},
    {"[.[]|label $x|if .>1 then break $x else . end]", "[1,2,1]", "[[1,1]]"},
    {"[limit(2;.[])],[first(.[])],[limit(0;.[])|1]", "[1,2,3]", "[[1,2],[1],[]]"},
    {"[nth(1;.[])],nth(1),first,last", "[1,2,3]", "[[2],2,1,3]"},
    {"[first(empty)]", "null", "[[]]"},
    {"[until(.>100;.*2)]", "1", "[[128]]"},
    {"[while(.<10;.*2)]", "1", "[[1,2,4,8]]"},
    {"[limit(5;repeat(.*2))]", "1", "[[2,2,2,2,2]]"},
    {"[range(3)],[range(1;3)],[range(0;10;3)],[range(5;0;-2)],[range(0,1;3,4)]", "null",
     "[[0,1,2],[1,2],[0,3,6,9],[5,3,1],[0,1,2,0,1,2,3,1,2,1,2,3]]"},
    {"[range(2.5)],[range(0;1;0.3)]", "null", "[[0,1,2],[0,0.3,0.6,0.8999999999999999]]"},
    {"[recurse],[recurse(.[]?;.!=null)]", "[1,[null]]",
     "[[[1,[null]],1,[null],null],[[1,[null]],1,[null]]]"},
    {"[recurse(if .<3 then .+1 else empty end)]", "1", "[[1,2,3]]"},
    {"[recurse(.*.;.<100)]", "2", "[[2,4,16]]"},
    {"map(.+1),map_values(.+1)", "{\"a\":1,\"b\":2}", "[[2,3],{\"a\":2,\"b\":3}]"},
    {"map(.,.)", "[1,2]", "[[1,1,2,2]]"},
    {"map(select(.>1))", "[1,2,3]", "[[2,3]]"},
    {"length,utf8bytelength", "\"aéb\"", "[3,4]"},
    {"[.[]|length]", "[null,-5,\"aé\",[1],{\"a\":1}]", "[[0,5,2,1,1]]"},
    {"keys,keys_unsorted", "{\"b\":1,\"a\":2}", "[[\"a\",\"b\"],[\"b\",\"a\"]]"},
    {"keys", "[5,6]", "[[0,1]]"},
    {"[has(\"a\",\"b\")]", "{\"a\":1}", "[[true,false]]"},
    {"[has(0,1,-1)]", "[1]", "[[true,false,false]]"},
    {"[.[]|in([5,6])]", "[0,1,2]", "[[true,true,false]]"},
    {"[contains(\"b\"),contains(\"x\")]", "\"abc\"", "[[true,false]]"},
    {"contains({a:[\"x\"],b:1})", "{\"a\":[\"xyz\"],\"b\":1,\"c\":2}", "[true]"},
    {"[contains([1]),contains([\"a\"])]", "[\"ab\",1]", "[[true,true]]"},
    {"inside([1,2,3])", "[1,2]", "[true]"},
    {"add", "[\"a\",\"b\"]", "[\"ab\"]"},
    {"add", "[[1],[2]]", "[[1,2]]"},
    {"add", "{\"a\":1,\"b\":2}", "[3]"},
    {"add", "[]", "[null]"},
    {"any(.>2),all(.>0),any(.[];.==2),all(.[];.>1)", "[1,2,3]", "[true,true,true,false]"},
    {"[any(empty;.),all(empty;.)]", "null", "[[false,true]]"},
    {"any(1,error;.==1)", "null", "[true]"},
    {"[isempty(empty),isempty(1)]", "null", "[[true,false]]"},
    {"join(\",\"),join(\"-\")", "[\"a\",1,null,true]", "[\"a,1,,true\",\"a-1--true\"]"},
    {"[join(\",\",\"/\")]", "[\"a\",\"b\"]", "[[\"a,b\",\"a/b\"]]"},
    {"join(\",\")", "[]", "[\"\"]"},
    {"split(\",\"),split(\"\")", "\"a,b,c\"",
     "[[\"a\",\"b\",\"c\"],[\"a\",\",\",\"b\",\",\",\"c\"]]"},
    {"[.[]|split(\"a\")]", "[\"\",\"a\",\"aba\",\"xay\"]",
     "[[[],[\"\",\"\"],[\"\",\"b\",\"\"],[\"x\",\"y\"]]]"},
    {"[.[]|startswith(\"a\"),endswith(\"a\")]", "[\"ab\",\"ba\",\"a\"]",
     "[[true,false,false,true,true,true]]"},
    {"[.[]|ltrimstr(\"a\"),rtrimstr(\"a\")]", "[\"ab\",\"ba\",1,\"a\"]",
     "[[\"b\",\"ab\",\"ba\",\"b\",1,1,\"\",\"\"]]"},
    {"ascii_downcase,ascii_upcase,explode,(explode|implode)", "\"aBé\"",
     "[\"abé\",\"ABé\",[97,66,233],\"aBé\"]"},
    {"[.[]|tostring]", "[1,\"1\",[1,{\"a\":null}],true,1.5]",
     "[[\"1\",\"1\",\"[1,{\\\"a\\\":null}]\",\"true\",\"1.5\"]]"},
    {"[.[]|tojson]", "[1,\"1\\\"\",[1],null]", "[[\"1\",\"\\\"1\\\\\\\"\\\"\",\"[1]\",\"null\"]]"},
    {"[.[]|tonumber]", "[\"1\",\"-1.5e2\",3]", "[[1,-1.5e2,3]]"},
    {"[.[]|tojson|fromjson]", "[1,\"a\",[1,{\"a\":[]}]]", "[[1,\"a\",[1,{\"a\":[]}]]]"},
    {"[.[]|type]", "[null,true,1,\"a\",[],{}]",
     "[[\"null\",\"boolean\",\"number\",\"string\",\"array\",\"object\"]]"},
    {"to_entries", "{\"b\":1,\"a\":2}",
     "[[{\"key\":\"b\",\"value\":1},{\"key\":\"a\",\"value\":2}]]"},
    {"from_entries",
     "[{\"key\":\"a\",\"value\":1},{\"k\":\"b\",\"v\":2},{\"name\":\"c\",\"Value\":3},{\"key"
     "\":1,\"value\":4}]",
     "[{\"a\":1,\"b\":2,\"c\":3,\"1\":4}]"},
    {"with_entries(.value+=1)", "{\"a\":1,\"b\":2}", "[{\"a\":2,\"b\":3}]"},
    {"with_entries(select(.value>1))", "{\"a\":1,\"b\":2}", "[{\"b\":2}]"},
    {"min,max,sort,unique,reverse", "[3,1,2,1]", "[1,3,[1,1,2,3],[1,2,3],[1,2,1,3]]"},
    {"min,max", "[]", "[null,null]"},
    {"min_by(.a),max_by(.a),sort_by(.a),group_by(.a),unique_by(.a)",
     "[{\"a\":2,\"b\":1},{\"a\":1,\"b\":2},{\"a\":2,\"b\":3}]",
     "[{\"a\":1,\"b\":2},{\"a\":2,\"b\":3},[{\"a\":1,\"b\":2},{\"a\":2,\"b\":1},{\"a\":2,\"b"
     "\":3}],[[{\"a\":1,\"b\":2}],[{\"a\":2,\"b\":1},{\"a\":2,\"b\":3}]],[{\"a\":1,\"b\":2},{"
     "\"a\":2,\"b\":1}]]"},
    {"sort_by(.a,.b)", "[{\"a\":2,\"b\":1},{\"a\":1,\"b\":2},{\"a\":2,\"b\":0}]",
     "[[{\"a\":1,\"b\":2},{\"a\":2,\"b\":0},{\"a\":2,\"b\":1}]]"},
    {"sort", "[{\"b\":1},{\"a\":2},[2],[1,2],\"b\",\"a\",2,1,true,false,null]",
     "[[null,false,true,1,2,\"a\",\"b\",[1,2],[2],{\"a\":2},{\"b\":1}]]"},
    {"group_by(.)", "[1,2,1]", "[[[1,1],[2]]]"},
    {"flatten,flatten(1)", "[[1,[2]],3]", "[[1,2,3],[1,[2],3]]"},
    {"[.[]|indices(1)]", "[[1,2,1],null]", "[[[0,2],null]]"},
    {"[indices(\"a\"),index(\"a\"),rindex(\"a\"),index(\"z\")]", "\"abca\"", "[[[0,3],0,3,null]]"},
    {"indices([1,2])", "[1,2,1,2]", "[[0,2]]"},
    {".[[1,2]]", "[1,2,1,2]", "[[0,2]]"},
    {"[paths],[paths(type==\"number\")],[leaf_paths]", "{\"a\":[1,{\"b\":2}]}",
     "[[[\"a\"],[\"a\",0],[\"a\",1],[\"a\",1,\"b\"]],[[\"a\",0],[\"a\",1,\"b\"]],[[\"a\",0],["
     "\"a\",1,\"b\"]]]"},
    {"[path(..)]", "[[1]]", "[[[],[0],[0,0]]]"},
    {"[path(.a[0].b)],[path(.a,.b)],[path(.a|.b)],[path(first(.a,.b))],[path(.[1:2])]", "null",
     "[[[\"a\",0,\"b\"]],[[\"a\"],[\"b\"]],[[\"a\",\"b\"]],[[\"a\"]],[[{\"start\":1,\"end\":2"
     "}]]]"},
    {"[path(.a // .b)],[path(if .c then .a else .b end)]", "{\"b\":1}", "[[[\"b\"]],[[\"b\"]]]"},
    {"[path(getpath([\"a\",\"b\"]))]", "null", "[[[\"a\",\"b\"]]]"},
    {"[path(.a[]|select(.>1))]", "{\"a\":[1,2,3]}", "[[[\"a\",1],[\"a\",2]]]"},
    {"getpath([\"a\",0,\"b\"]),getpath([\"x\",\"y\"])", "{\"a\":[{\"b\":5}]}", "[5,null]"},
    {"setpath([\"a\",0];1),setpath([];1)", "null", "[{\"a\":[1]},1]"},
    {"delpaths([[\"a\",0],[\"b\"]])", "{\"a\":[1,2],\"b\":3}", "[{\"a\":[2]}]"},
    {"del(.a),del(.a,.b),del(.c[0]),del(.[])", "{\"a\":1,\"b\":2}",
     "[{\"b\":2},{},{\"a\":1,\"b\":2},{}]"},
    {"del(.[0,2]),del(.[-1]),del(.[0:2]),del(.[]|select(.>1)),del(.[0],.[0])", "[1,2,3]",
     "[[2],[1,2],[3],[1],[2,3]]"},
    {"del(.[1:][0])", "[1,2,3]", "[[1,3]]"},
    {"del(.a[0].b,.a[0].c,.a[1])", "{\"a\":[{\"b\":1,\"c\":2,\"d\":3},4,5]}",
     "[{\"a\":[{\"d\":3},5]}]"},
    {"to_entries|from_entries", "{\"b\":1,\"a\":2}", "[{\"b\":1,\"a\":2}]"},
    {".a=1,.b.c[1]=2", "{\"a\":0}", "[{\"a\":1},{\"a\":0,\"b\":{\"c\":[null,2]}}]"},
    {".a|=.+1,.a+=1,.a-=1,.a*=3,.a/=2,.a%=2,.z//=9,.a//=9", "{\"a\":4}",
     "[{\"a\":5},{\"a\":5},{\"a\":3},{\"a\":12},{\"a\":2},{\"a\":0},{\"a\":4,\"z\":9},{\"a\":4}]"},
    {"[.a=(1,2)],[.a+=(1,2)]", "{\"a\":0}", "[[{\"a\":1},{\"a\":2}],[{\"a\":1},{\"a\":2}]]"},
    {".[]|=.+1", "[1,2]", "[[2,3]]"},
    {".[]+=1", "{\"a\":1,\"b\":2}", "[{\"a\":2,\"b\":3}]"},
    {".[1:]=[9],.[1:]|=map(.*2),.[5:]=[1]", "[1,2,3]", "[[1,9],[1,4,6],[1,2,3,1]]"},
    {".[-1]=9,.[3]=1,.[5]=1", "[1,2,3]", "[[1,2,9],[1,2,3,1],[1,2,3,null,null,1]]"},
    {"(.[]|select(.>1))=9,(.[0],.[1])|=.+1", "[1,2,3]", "[[1,9,9],[2,3,3]]"},
    {"(.. | numbers) |= .+1", "[1,[2,{\"a\":3}]]", "[[2,[3,{\"a\":4}]]]"},
    {"(.a,.b)=1", "{}", "[{\"a\":1,\"b\":1}]"},
    {".a.b|=3", "null", "[{\"a\":{\"b\":3}}]"},
    {"(.a|.b)+=1", "{\"a\":{\"b\":1}}", "[{\"a\":{\"b\":2}}]"},
    {".[.i]=5", "{\"i\":\"x\"}", "[{\"i\":\"x\",\"x\":5}]"},
    {".[][0]|=.+1", "[[1,2],[3]]", "[[[2,2],[4]]]"},
    {"(if .a then .b else .c end)=1", "{\"a\":true}", "[{\"a\":true,\"b\":1}]"},
    {"(.a // .b)=1", "{\"b\":2}", "[{\"b\":1}]"},
    {"first(.[]|select(.>1))|=10", "[1,2,3]", "[[1,10,3]]"},
    {"getpath([\"a\",\"b\"])|=5", "null", "[{\"a\":{\"b\":5}}]"},
    {".a[1:2]=[5]", "{}", "[{\"a\":[5]}]"},
    {"def f: .a; f|=1", "{}", "[{\"a\":1}]"},
    {"def f(p): p|=.+1; f(.a)", "{\"a\":1}", "[{\"a\":2}]"},
    {"reduce (\"a\",\"b\") as $k ({}; .[$k]=1)", "null", "[{\"a\":1,\"b\":1}]"},
    {"floor,ceil,round,sqrt,fabs,(pow(.;2)),log2,exp2", "2.25",
     "[2,3,2,1.5,2.25,5.0625,1.1699250014423124,4.756828460010884]"},
    {"[.[]|floor,round]", "[-1.5,2.5]", "[[-2,-2,2,3]]"},
    {"[infinite,-infinite,nan]|map(isinfinite,isnan,isnormal)", "null",
     "[[true,false,false,true,false,false,false,true,false]]"},
    {"[nan]|sort,(nan<nan),([nan,1]|min)", "null", "[[null],true,null]"},
    {"{a:1,\"b\":2,\"c\\(1)\":3,(.x):4,@base64 \"d\":5,if:6}", "{\"x\":\"y\"}",
     "[{\"a\":1,\"b\":2,\"c1\":3,\"y\":4,\"d\":5,\"if\":6}]"},
    {". as $x|{$x,y:1}|.y", "1", "[1]"},
    {"{a,\"b\"}", "{\"a\":1,\"b\":2,\"c\":3}", "[{\"a\":1,\"b\":2}]"},
    {"{\"a\\(1)\"}", "{\"a1\":5}", "[{\"a1\":5}]"},
    {"[{a:(1,2),b:(3,4)}],[{(\"a\",\"b\"):(1,2)}]", "null",
     "[[{\"a\":1,\"b\":3},{\"a\":1,\"b\":4},{\"a\":2,\"b\":3},{\"a\":2,\"b\":4}],[{\"a\":1},{"
     "\"a\":2},{\"b\":1},{\"b\":2}]]"},
    {"{a:1|2},{a:1,a:2}", "null", "[{\"a\":2},{\"a\":2}]"},
    {"{a:1}|has(\"a\"),(.b//\"d\")", "null", "[true,\"d\"]"},
    {"transpose", "[[1],[2,3]]", "[[[1,2],[null,3]]]"},
    {"[combinations]", "[[1,2],[3,4]]", "[[[1,3],[1,4],[2,3],[2,4]]]"},
    {"[combinations(2)]", "[0,1]", "[[[0,0],[0,1],[1,0],[1,1]]]"},
    {"walk(if type==\"number\" then .+1 else . end)", "[1,{\"a\":2}]", "[[2,{\"a\":3}]]"},
    {"[tostream]", "{\"a\":[1,{\"b\":2}]}",
     "[[[[\"a\",0],1],[[\"a\",1,\"b\"],2],[[\"a\",1,\"b\"]],[[\"a\",1]],[[\"a\"]]]]"},
    {"[.[]|IN(1,2)],INDEX(.),IN(.[];3)", "[1,3]", "[[true,false],{\"1\":1,\"3\":3},true]"},
    {"[limit(3;.[])]", "[1]", "[[1]]"},
    {"[.[]|objects,scalars,iterables,nulls,booleans,strings,arrays,values]",
     "[1,null,{},[],\"a\",true]",
     "[[1,1,null,null,{},{},{},[],[],[],\"a\",\"a\",\"a\",true,true,true]]"},
    {"test(\"b\"),test(\"z\")", "\"abc\"", "[true,false]"},
    {"\"\\u00e9\\ud83d\\ude00\\n\\t\\\"\\\\\\/\"", "null", "[\"é😀\\n\\t\\\"\\\\/\"]"},
    {"1e3,1.5,.5,100000000000000000000,1e-5,0.0001", "null",
     "[1000,1.5,0.5,100000000000000000000,1e-5,0.0001]"},
    {".[0]==.[1]", "[1.0,1]", "[true]"},
    {"# comment", "null", "[]"},
    {"tojson", "[1.10,1e2]", "[\"[1.10,1e2]\"]"},
    {"ltrimstr(\"a\") , 1 # c", "\"ab\"", "[\"b\",1]"},
    {".a?.b?//\"none\"", "1", "[\"none\"]"},
    {"[.[]|try (if .>1 then error(\"big\") else . end) catch \"c\"]", "[1,2]", "[[1,\"c\"]]"},
    {".. == 1", "1", "[true]"},
    {"[.,1]|.[0]", "2", "[2]"},
    {".e0", "{\"e0\":1}", "[1]"},
    {"[.[]|.and]", "[{\"and\":1}]", "[[1]]"},
    {"try (null|implode) catch .", "1", "[\"implode input must be an array\"]"},
    {"[1,2,3] | IN(.[]; 2)", "null", "[true]"},
    {"[.[]|ascii]", "[65]", "[[\"A\"]]"},
    {"[getpath([\"a\"],[\"b\"])]", "{\"a\":1,\"b\":2}", "[[1,2]]"},
    {"[range(1;4)] | .[1:] = [\"x\"] | . + [.[0]]", "1", "[[1,\"x\",1]]"},
    {"with_entries(.key |= \"x_\" + .)", "{\"a\":1}", "[{\"x_a\":1}]"},
    {"[.[] | {name, n: (.v | tostring)}] | group_by(.name) | map({(.[0].name): map(.n)}) | add",
     "[{\"name\":\"a\",\"v\":1},{\"name\":\"b\",\"v\":2},{\"name\":\"a\",\"v\":3}]",
     "[{\"a\":[\"1\",\"3\"],\"b\":[\"2\"]}]"},
    {"to_entries | map(\"\\(.key)=\\(.value)\") | join(\"&\")", "{\"a\":1,\"b\":\"x\"}",
     "[\"a=1&b=x\"]"},
    {"$context.user, $v + 1", "null", "[\"u1\",43]"},
    {"def f: $v; f", "null", "[42]"},
    {"map(. + $v)", "[1]", "[[43]]"},
    /* As jq 1.7 has them, where jq 1.6, which the oracle runs, differs or stops. */
    {"[.[-1.2],.[-0.5],.[1.7],.[nan],.[-3.5],.[-4.2]]", "[1,2,3]", "[[3,1,2,null,1,null]]"},
    {"(.[-1.2]=9),(.[-0.5]=9),del(.[-1.2]),del(.[nan]),(try (.[nan]=9) catch .)", "[1,2,3]",
     "[[1,2,9],[9,2,3],[1,2],[1,2,3],\"Cannot set array element at NaN index\"]"},
    {"[.[nan:],.[:nan],.[-0.5:]]", "[1,2,3]", "[[[1,2,3],[1,2,3],[3]]]"},
    {"[has(-0.5),has(nan),has(-1)]", "[1]", "[[true,false,false]]"},
    {"[\"ab\"*0,\"ab\"*-1,\"ab\"*0.5,\"ab\"*1.5,\"ab\"*nan,0*\"ab\"]", "null",
     "[[\"\",null,\"\",\"ab\",null,\"\"]]"},
    {"[nth(0,2,5;10,11,12)],[nth(1;empty)],(try nth(-1;1) catch .)", "null",
     "[[10,12],[],\"nth doesn't support negative indices\"]"},
    {"\"\",null,0,{}|reverse", "null", "[[],[],[],[]]"},
    {"def f($x;$y): [$x,x,$y,y]; [f(1,2;3,4)]", "null",
     "[[[1,1,2,3,3,4],[1,1,2,4,3,4],[2,1,2,3,3,4],[2,1,2,4,3,4]]]"},
    {"def f($a): if $a > 3 then a else f($a+1) end; [f(1,2)]", "null", "[[4,4]]"},
    {"[{\"\\(\"a\",\"b\")\"}],[{\"\\(\"a\",\"b\")\":(1,2)}]", "{\"a\":1,\"b\":2}",
     "[[{\"a\":1},{\"b\":2}],[{\"a\":1},{\"a\":2},{\"b\":1},{\"b\":2}]]"},
    {"[foreach (1,2,3) as $x (0; if $x==2 then empty else .+$x end; [$x,.])]", "null",
     "[[[1,1],[3,3]]]"},
    {"[.[]|tonumber]", "[\".89\",\"1.\",\"01\",\"+1\",\" -.5e1\",\"1.e2\"]",
     "[[0.89,1,1,1,-0.5e1,1e2]]"},
    {"[.[]|try tonumber catch \"no\"]",
     "[\"1..\",\"+-1\",\"1.5.\",\"\",\".\",\"1e\",\"- 1\",\"+\"]",
     "[[\"no\",\"no\",\"no\",\"no\",\"no\",\"no\",\"no\",\"no\"]]"},
    {"[.[3:7],.[-3:],.[9:],length,.[0:100],.[12:],.[8:9]]", "\"aé€😀bcdéfghij€kl😀😀é\"",
     "[[\"😀bcd\",\"😀😀é\",\"ghij€kl😀😀é\",19,\"aé€😀bcdéfghij€kl😀😀é\",\"j€kl😀😀é\",\"f\"]]"},
    {"[nan,1,null]|@csv,@tsv", "null", "[\",1,\",\"\\t1\\t\"]"},
    {"[limit(3;repeat(.*2))],[repeat(.*2,error)?]", "1", "[[2,2,2],[2]]"},
    /* Numbers that were written and not computed with are compared by all their digits. */
    {".[0] as $a | .[1] as $b | [$a == $b, $a != $b, $a < $b, $a >= $b, $a == $a, $b == "
     "9007199254740993, $a == 9007199254740993, -$b == -9007199254740993]",
     "[9007199254740992,9007199254740993]", "[[false,true,true,false,true,true,false,true]]"},
    {"unique, sort, min, max, . - [.[0]], index(9007199254740992), (group_by(.) | length)",
     "[9007199254740993,9007199254740992,9007199254740993]",
     "[[9007199254740992,9007199254740993],[9007199254740992,9007199254740993,9007199254740993],"
     "9007199254740992,9007199254740993,[9007199254740992],1,2]"},
    {"contains([9007199254740993]), ([9007199254740993] | inside([9007199254740992])), "
     "IN([9007199254740993]), ({a: .[0]} == {a: 9007199254740993}), (.[0] | tostring | tonumber), "
     "(map({key: tostring, value: .}) | from_entries), any(. == 9007199254740993), "
     "(.[0] | tojson | fromjson == 9007199254740992), (.[0] | -(-.), abs, length)",
     "[9007199254740992]",
     "[false,false,false,false,9007199254740992,{\"9007199254740992\":9007199254740992},false,"
     "true,9007199254740992,9007199254740992,9007199254740992]"},
    {"[.[] | . == 1e-400, . < infinite, . > 1e400], (map(-.) | max < 0)", "[1e-401,1e401]",
     "[[false,true,false,false,true,true],true]"},
    {"[.[] == 1, .[] == 0.1]", "[1.0,1e0,10e-1,0.10]",
     "[[true,true,true,false,false,false,false,true]]"},
    {". as $big | [$big, $big + 1] | map(. > 10000000000000000000000000000000)",
     "10000000000000000000000000000001", "[[true,false]]"},
    {".a?//\"none\"", "1", "[\"none\"]"},
    /* "?" forgives the access before it and nothing else. */
    {".[].a?", "[1,{\"a\":2},[]]", "[2]"},
    {"(.[].a)?", "[{\"a\":2},1,{\"a\":3}]", "[2]"},
    {".[][]?", "[[1],2,[3]]", "[1,3]"},
    {".[0, \"a\"]?", "{\"a\":1}", "[1]"},
    {"try .a.b? catch \"c\"", "{\"a\":[]}", "[]"},
    {"try (error(\"x\").a?) catch .", "1", "[\"x\"]"},
    {"(.[].a? |= 5), (.[][]? |= 1)", "[1,{\"a\":2}]", "[[1,{\"a\":5}],[1,{\"a\":1}]]"},
    /* An update without output deletes; one that was asked of nothing makes nothing. */
    {"(.[] | select(. > 1)) |= empty, .[0] |= empty", "[1,2,3]", "[[1],[2,3]]"},
    {"(.a.b |= empty), ((.a | empty) |= 1), (.a |= empty)", "null", "[null,null,null]"},
    {"(.a, .b) |= empty", "{\"a\":1,\"b\":2,\"c\":3}", "[{\"c\":3}]"},
    {". |= empty", "1", "[null]"},
    /* What is raised behind a try is not caught by it. */
    {"try ((try 1 catch \"inner\") | error(\"x\")) catch \"outer\"", "null", "[\"outer\"]"},
    {"try ((try . catch \"inner\") | error(\"x\")) catch \"outer\"", "1", "[\"outer\"]"},
    {"try ((try .[] catch \"inner\") | error(.)) catch .", "[7,8]", "[7]"},
    {"last(empty), [limit(0; error(\"x\"))]", "null", "[null,[]]"},
};

static void every_construct_gives_what_jq_gives(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        struct fixture f;
        fixture_init(&f);
        struct rv_str all = rv_arena_printf(&f.arena, "[%s\n]",
                                            results[i].text); /* a comment ends at the line */
        if (evaluate(&f, all.at, results[i].input) != RV_OK)
            fail_msg("%s: %.*s", results[i].text, RV_STR_FMT(f.fault.message));
        if (!rv_str_is(rv_buf_str(&f.text), results[i].outputs))
            fail_msg("%s of %s gives %.*s, not %s", results[i].text, results[i].input,
                     RV_STR_FMT(rv_buf_str(&f.text)), results[i].outputs);
        fixture_done(&f);
    }
}

static void the_first_output_counts_and_none_is_null(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(evaluate(&f, "empty", "1"), RV_OK);
    assert_true(rv_str_is(rv_buf_str(&f.text), "null"));
    assert_int_equal(evaluate(&f, ".[], error(\"not asked for\")", "[7,8]"), RV_OK);
    assert_true(rv_str_is(rv_buf_str(&f.text), "7"));
    fixture_done(&f);
}

static const struct {
    const char *text;
    const char *input;
    size_t offset;
    const char *message;
} errors[] = {
    {".a", "1", 0, "Cannot index number with string \"a\""},
    {".a.b", "{\"a\":[]}", 2, "Cannot index array with string \"b\""},
    {".[0]", "{}", 0, "Cannot index object with number"},
    {".[\"a\"]", "[1]", 0, "Cannot index array with string \"a\""},
    {".[null]", "{}", 0, "Cannot index object with null"},
    {".[]", "null", 0, "Cannot iterate over null (null)"},
    {".[]", "1", 0, "Cannot iterate over number (1)"},
    {".[1:2]", "{}", 0, "Cannot index object with object"},
    {".[\"a\":]", "[1]", 0, "Start and end indices of an array slice must be numbers"},
    {"{}+1", "null", 2, "object ({}) and number (1) cannot be added"},
    {"{\"abcdefgh\":\"xyz\"}+1", "null", 18,
     "object ({\"abcdefgh\"...) and number (1) cannot be added"},
    {"\"éééééééééé\"+1", "null", 22, "string (\"ééééé...) and number (1) cannot be added"},
    {"[[[[[[1]]]]]]+{}", "null", 13, "array ([[[[[[1]]]]]]) and object ({}) cannot be added"},
    {"\"a\"-1", "null", 3, "string (\"a\") and number (1) cannot be subtracted"},
    {"{}*2", "null", 2, "object ({}) and number (2) cannot be multiplied"},
    {"4/[]", "null", 1, "number (4) and array ([]) cannot be divided"},
    {"1/.", "0", 1, "number (1) and number (0) cannot be divided because the divisor is zero"},
    {"5%.", "0", 1, "number (5) and number (0) cannot be divided because the divisor is zero"},
    {"-.", "\"a\"", 0, "string (\"a\") cannot be negated"},
    {"{(.):1}", "1", 2, "Cannot use number (1) as object key"},
    {"keys", "1", 0, "number (1) has no keys"},
    {"length", "true", 0, "boolean (true) has no length"},
    {"has(\"a\")", "[1]", 0, "Cannot check whether array has a string key"},
    {"contains(\"a\")", "1", 0,
     "number (1) and string (\"a\") cannot have their containment checked"},
    {"sort", "1", 0, "number (1) cannot be sorted, as it is not an array"},
    {"group_by(.)", "1", 0, "Cannot iterate over number (1)"},
    {"min", "1", 0, "Cannot iterate over number (1)"},
    {"add", "1", 0, "Cannot iterate over number (1)"},
    {"implode", "\"x\"", 0, "implode input must be an array"},
    {"implode", "[[1]]", 0, "array ([1]) can't be imploded, unicode codepoint needs to be numeric"},
    {"explode", "1", 0, "explode input must be a string"},
    {"split(\",\")", "1", 0, "split input and separator must be strings"},
    {"join(\",\")", "[[1]]", 0, "string (\"\") and array ([1]) cannot be added"},
    {"startswith(\"a\")", "1", 0, "startswith() requires string inputs"},
    {"tonumber", "\"a\"", 0, "string (\"a\") cannot be parsed as a number"},
    {"tonumber", "\"1 2\"", 0, "string (\"1 2\") cannot be parsed as a number"},
    {"tonumber", "[1]", 0, "array ([1]) cannot be parsed as a number"},
    {"fromjson", "\"[1\"", 0, "the array is not closed at line 1, column 3 (while parsing '[1')"},
    {"ascii_downcase", "1", 0, "number (1) is not a string and has no case"},
    {"range(\"a\")", "null", 0, "Range bounds must be numeric"},
    {"flatten(-1)", "[1]", 0, "flatten depth must not be negative"},
    {"nth(-1;1)", "null", 0, "nth doesn't support negative indices"},
    {"getpath(\"a\")", "null", 0, "Path must be specified as an array"},
    {"getpath([\"a\",\"b\"])", "{\"a\":1}", 0, "Cannot index number with string \"b\""},
    {"setpath(\"a\";1)", "null", 0, "Path must be specified as an array"},
    {"delpaths(1)", "null", 0, "Paths must be specified as an array"},
    {"delpaths([[\"a\",\"b\"]])", "{\"a\":1}", 0, "Cannot delete fields from number"},
    {"path(1)", "null", 0, "Invalid path expression with result 1"},
    {"path(1|.a)", "null", 7, "Invalid path expression near attempt to access element \"a\" of 1"},
    {"path([1]|.[])", "null", 9, "Invalid path expression near attempt to iterate through [1]"},
    {".[-5]=1", "[1]", 0, "Out of bounds negative array index"},
    {".[-1]=1", "null", 0, "Out of bounds negative array index"},
    {".a=1", "1", 0, "Cannot index number with string \"a\""},
    {".[1:]=1", "[1]", 0, "A slice of an array can only be assigned another array"},
    {".[0:1]=\"x\"", "\"abc\"", 0, "Cannot update field at object index of string"},
    {"1|=2", "null", 1, "Invalid path expression with result 1"},
    {"error(\"x\")", "null", 0, "x"},
    {"error({a:1})", "null", 0, "{\"a\":1}"},
    {"error", "\"y\"", 0, "y"},
    {"error(null)", "null", 0, "null"},
    {"@csv", "{}", 0, "object ({}) cannot be csv-formatted, only array"},
    {"@csv", "[[1]]", 0, "array ([1]) is not valid in a csv row"},
    {"@sh", "[[1]]", 0, "array ([1]) can not be escaped for shell"},
    {"@base64d", "\"!\"", 0, "string (\"!\") is not valid base64 data"},
    {"test(\"a.b\")", "\"x\"", 0,
     "test(\"a.b\"): regular expressions are not supported yet; for plain text with \".\" use"
     " contains, startswith or endswith"},
    {"test(\"a\")", "1", 0, "number (1) cannot be matched, as it is not a string"},
    {"floor", "\"a\"", 0, "string (\"a\") number required"},
    {". as [$a]|1", "{}", 6, "Cannot index object with number"},
    {". as {a:$a}|1", "[]", 6, "Cannot index array with string \"a\""},
    {"limit(\"a\";1)", "null", 0, "string (\"a\") is not a count for limit"},
    {"tojson|fromjson|error", "{\"a\":\"b\"}", 16, "{\"a\":\"b\"}"},
    {"to_entries", "null", 0, "null (null) has no keys"},
    {"from_entries", "[1]", 0, "Cannot index number with string \"key\""},
    {"trim", "1", 0, "trim input must be a string"},
    {"reverse", "1", 0, "Cannot reverse number (1), as it is not an array"},
    {"reverse", "\"ab\"", 0, "Cannot reverse string (\"ab\"), as it is not an array"},
};

static void errors_name_the_place_and_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct fixture f;
        fixture_init(&f);
        assert_int_equal(evaluate(&f, errors[i].text, errors[i].input), RV_ERR_INVALID);
        if (f.fault.offset != errors[i].offset || !rv_str_is(f.fault.message, errors[i].message))
            fail_msg("%s: %zu: %.*s", errors[i].text, f.fault.offset, RV_STR_FMT(f.fault.message));
        fixture_done(&f);
    }
}

static void a_raised_value_is_handed_out(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(evaluate(&f, "error({type: \"declined\", status: 402})", "1"), RV_ERR_INVALID);
    assert_true(rv_str_is(rv_json_str(rv_json_get(&f.fault.value, RV_STR("type"))), "declined"));
    fixture_done(&f);
}

static const struct {
    const char *text;
    enum rv_err err;
    size_t offset;
    const char *message;
} faults[] = {
    {"", RV_ERR_INVALID, 0, "the expression ends where a value was expected"},
    {".a |", RV_ERR_INVALID, 4, "the expression ends where a value was expected"},
    {".a | | .b", RV_ERR_INVALID, 5, "unexpected \"|\"; expected a value"},
    {"lenght", RV_ERR_INVALID, 0, "unknown function `lenght/0`: did you mean `length`?"},
    {"map(lenght)", RV_ERR_INVALID, 4, "unknown function `lenght/0`: did you mean `length`?"},
    {"$contxt", RV_ERR_INVALID, 0, "unknown variable $contxt: did you mean $context?"},
    {".a + $x", RV_ERR_INVALID, 5, "unknown variable $x: did you mean $v?"},
    {"{a:1", RV_ERR_INVALID, 4,
     "the expression ends where \",\" or \"}\" in the object was expected"},
    {"[1,2", RV_ERR_INVALID, 4, "the expression ends where \"]\" or \",\" was expected"},
    {"(1", RV_ERR_INVALID, 2, "the expression ends where \")\" was expected"},
    {"\"abc", RV_ERR_INVALID, 0, "this string has no closing quote"},
    {"\"a\\qb\"", RV_ERR_INVALID, 2, "unknown escape in a string; a backslash is written \\\\"},
    {"\"a\\(1\"", RV_ERR_INVALID, 5,
     "unexpected string; expected \")\" after the expression inside \"\\(...)\""},
    {"\"a\\ud800\"", RV_ERR_INVALID, 2, "unknown escape in a string; a backslash is written \\\\"},
    {"if . then 1", RV_ERR_INVALID, 11,
     "the expression ends where \"end\" of the \"if\" was expected"},
    {"if . 1", RV_ERR_INVALID, 5, "unexpected \"1\"; expected \"then\""},
    {"try", RV_ERR_INVALID, 3, "the expression ends where a value was expected"},
    {"reduce . as $x 1", RV_ERR_INVALID, 15,
     "unexpected \"1\"; expected \"(\" and the start value"},
    {"reduce .[] as x (0;1)", RV_ERR_INVALID, 14,
     "unexpected \"x\"; expected $name, [pattern] or {pattern} after \"as\""},
    {".a.b.", RV_ERR_INVALID, 5, "the expression ends where a name after \".\" was expected"},
    {".[", RV_ERR_INVALID, 2, "the expression ends where a value was expected"},
    {".[1", RV_ERR_INVALID, 3, "the expression ends where \"]\" or \":\" was expected"},
    {"1 == 2 == 3", RV_ERR_INVALID, 7,
     "\"==\" cannot follow \"==\" directly; use parentheses, or \"and\" between the two"},
    {"1 = 2 = 3", RV_ERR_INVALID, 6, "\"=\" cannot follow \"=\" directly; use parentheses"},
    {"{1:2}", RV_ERR_INVALID, 1, "a key is a string: write \"1\""},
    {"{(0):1}", RV_ERR_INVALID, 2, "a key is a string: write it in quotes"},
    {"{a:1,(null):1}", RV_ERR_INVALID, 6, "a key is a string: write it in quotes"},
    {"{a b}", RV_ERR_INVALID, 3, "unexpected \"b\"; expected \",\" or \"}\" in the object"},
    {"{(1)}", RV_ERR_INVALID, 4, "unexpected \"}\"; expected \":\" and a value after the key"},
    {". as x | 1", RV_ERR_INVALID, 5,
     "unexpected \"x\"; expected $name, [pattern] or {pattern} after \"as\""},
    {". as [] | 1", RV_ERR_INVALID, 6,
     "unexpected \"]\"; expected $name, [pattern] or {pattern} after \"as\""},
    {". as $x", RV_ERR_INVALID, 7,
     "the expression ends where \"|\" and the expression that uses the variable was expected"},
    {". as [$a] ?// $a | 1", RV_ERR_UNSUPPORTED, 10,
     "alternative patterns (?//) are not supported yet; test the type with \"if\""},
    {"def f: 1", RV_ERR_INVALID, 8,
     "the expression ends where \";\" after the body of the function was expected"},
    {"def f 1; 2", RV_ERR_INVALID, 6, "unexpected \"1\"; expected \":\" and the body"},
    {"def 1: 2; 3", RV_ERR_INVALID, 4,
     "unexpected \"1\"; expected the name of a function after \"def\""},
    {"f(1)", RV_ERR_INVALID, 0, "unknown function `f/1`"},
    {"split", RV_ERR_INVALID, 0, "`split` takes 1 argument, not 0"},
    {"range(1;2;3;4)", RV_ERR_INVALID, 0,
     "`range` takes 1 or 2 or 3 arguments, not 4; separate the arguments with \";\""},
    {"def f(a): a; f", RV_ERR_INVALID, 13, "`f` takes 1 argument, not 0"},
    {"break $x", RV_ERR_INVALID, 0,
     "this break is not inside a label $x; write \"label $x | ...\" before it"},
    {"label x | 1", RV_ERR_INVALID, 6, "unexpected \"x\"; expected $name after \"label\""},
    {"@foo", RV_ERR_INVALID, 0, "unknown format @foo"},
    {"@base32", RV_ERR_UNSUPPORTED, 0, "`@base32`: base32 is not supported yet; use @base64"},
    {"env", RV_ERR_UNSUPPORTED, 0,
     "`env` is refused: an expression may not read the environment; pass the value in the tas"
     "k's input"},
    {"$ENV", RV_ERR_UNSUPPORTED, 0,
     "$ENV is refused: an expression may not read the environment; pass the value in the task"
     "'s input"},
    {"$__loc__", RV_ERR_UNSUPPORTED, 0, "$__loc__ is not supported"},
    {"input", RV_ERR_UNSUPPORTED, 0,
     "`input` is refused: an expression has one input, \".\"; write \".\", or $input for the ste"
     "p's input"},
    {"now", RV_ERR_UNSUPPORTED, 0,
     "`now` is refused: an expression may not read the clock, since its result must be the s"
     "ame at each evaluation; pass the instant in the task's input"},
    {"debug", RV_ERR_UNSUPPORTED, 0,
     "`debug` is refused: an expression cannot print: its only output is its result; remove the "
     "call"},
    {"import \"a\" as a; 1", RV_ERR_UNSUPPORTED, 0,
     "`import` is refused: an expression cannot read files; define the function here with \"def\""},
    {"include \"a\"; 1", RV_ERR_UNSUPPORTED, 0,
     "`include` is refused: an expression cannot read files; define the function here with "
     "\"def\""},
    {"match(\"x\")", RV_ERR_UNSUPPORTED, 0,
     "`match`: regular expressions are not supported yet; test(s) and indices(s) find plain text"},
    {"test(\"a\";\"x\")", RV_ERR_UNSUPPORTED, 0,
     "`test`: regular expressions are not supported yet; test(s) finds plain text"},
    {"todate", RV_ERR_UNSUPPORTED, 0, "`todate`: dates are not supported yet"},
    {"end", RV_ERR_INVALID, 0,
     "unexpected \"end\"; expected a value (a field of that name is written .end)"},
    {".a then", RV_ERR_INVALID, 3,
     "unexpected \"then\"; expected the end of the expression, or an operator"},
    {"1 2", RV_ERR_INVALID, 2,
     "unexpected \"2\"; expected the end of the expression, or an operator"},
    {"&", RV_ERR_INVALID, 0, "unexpected \"&\"; expected a value"},
    {".a & .b", RV_ERR_INVALID, 3,
     "unexpected \"&\"; expected the end of the expression, or an operator"},
    {"é", RV_ERR_INVALID, 0, "unexpected \"é\"; expected a value"},
    {") ", RV_ERR_INVALID, 0, "unexpected \")\"; expected a value"},
    {"%", RV_ERR_INVALID, 0, "unexpected \"%\"; expected a value"},
};

static void the_compiler_names_the_place_and_the_cure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct fixture f;
        struct rv_expr *expr;
        fixture_init(&f);
        assert_int_equal(compile(&f, rv_str_of(faults[i].text), &expr), faults[i].err);
        if (f.fault.offset != faults[i].offset || !rv_str_is(f.fault.message, faults[i].message))
            fail_msg("%s: %zu: %.*s", faults[i].text, f.fault.offset, RV_STR_FMT(f.fault.message));
        fixture_done(&f);
    }
}

static void invalid_utf8_is_refused_where_it_stands(void **state)
{
    (void)state;
    struct fixture f;
    struct rv_expr *expr;
    fixture_init(&f);
    assert_int_equal(compile(&f, RV_STR(".a + \"\xc3(\""), &expr), RV_ERR_INVALID);
    assert_int_equal(f.fault.offset, 6);
    fixture_done(&f);
}

static void numbers_that_nobody_computes_with_keep_their_digits(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(
        evaluate(&f, "{a: .a, b: 12345678901234567891234567890}", "{\"a\":100000000000000000001}"),
        RV_OK);
    assert_true(rv_str_is(rv_buf_str(&f.text),
                          "{\"a\":100000000000000000001,\"b\":12345678901234567891234567890}"));
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_construct_gives_what_jq_gives),
        cmocka_unit_test(the_first_output_counts_and_none_is_null),
        cmocka_unit_test(errors_name_the_place_and_the_reason),
        cmocka_unit_test(a_raised_value_is_handed_out),
        cmocka_unit_test(the_compiler_names_the_place_and_the_cure),
        cmocka_unit_test(invalid_utf8_is_refused_where_it_stands),
        cmocka_unit_test(numbers_that_nobody_computes_with_keep_their_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
