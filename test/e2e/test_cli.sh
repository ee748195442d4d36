#!/bin/bash
# test/e2e/test_cli.sh REEVE - the command line as operators, scripts and newcomers use it, against a
# real server. Prints TAP.
set -u
reeve=$(realpath "$1")
dir=$(mktemp -d)
cd "$dir" || exit 1
unset REEVE_API_KEY REEVE_STORE REEVE_LISTEN REEVE_LOG
export USER=olga NO_COLOR=1
server=
agent=
count=0
red=0

end() {
    for pid in $server $agent; do
        kill "$pid" && wait "$pid"
    done 2>/dev/null
    rm -rf "$dir"
}
trap end EXIT

pause() { read -r -t 0.02 <> <(:); }

# until_true COMMAND...: asks again until it succeeds, 20 s at most.
until_true() {
    local end=$((SECONDS + 20))
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        pause
    done
    return 0
}

in_error() { [ "$("$reeve" show --json "$1" | jq -r .state)" = error ]; }

# run ARGUMENTS...: runs reeve; its exit code, stdout and stderr are kept in code, out and err.
run() {
    ran="reeve $*"
    "$reeve" "$@" >out.txt 2>err.txt </dev/null
    code=$?
    out=$(<out.txt)
    err=$(<err.txt)
}

verdict() { # GOOD NAME WANTED
    count=$((count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $count - $2"
        return
    fi
    red=1
    echo "not ok $count - $2"
    { echo "ran: $ran"; echo "exit code: $code"; echo "wanted: $3"; echo "stdout:"; echo "$out"
        echo "stderr:"; echo "$err"; } | sed 's/^/# /'
}

# gives NAME CODE PATTERN: the last run ended so, and stdout and stderr together match the pattern.
gives() {
    local good=1 all="$out"$'\n'"$err"
    # shellcheck disable=SC2053  # the right side is a pattern
    [ "$code" = "$2" ] && [[ $all == *$3* ]] && good=0
    verdict $good "$1" "exit code $2 and $3"
}

begin_server() {
    "$reeve" serve --listen "127.0.0.1:${1:-0}" --store "$dir/store.db" >server.out 2>>server.err &
    server=$!
    until_true grep -qs '^reeve: listening on ' server.out || {
        echo "Bail out! the server does not start: $(cat server.out server.err)"
        exit 1
    }
    REEVE_URL=$(sed -n 's/^reeve: listening on //p' server.out)
    export REEVE_URL
}

end_server() {
    kill -TERM "$server" && wait "$server"
    server=
    : >server.out
}

# The agent "shop": answers each request by what its input asks for. It ends between two polls, so
# that no poll is left that would take a request away. One process: with curl and jq for each poll
# it took more processor time than all that is tested here.
serve_agent() {
    exec python3 - "$REEVE_URL" <<'END'
import json, os, sys, time, urllib.request

def post(path, body):
    request = urllib.request.Request(sys.argv[1] + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)

def result(request):
    deed = request["input"].get("do")
    if deed == "decline":
        return {"error": {"type": "declined", "title": "no funds"}}
    return {"output": {"did": deed}}

while not os.path.exists("agent.stop"):
    try:
        polled = post("/v1/agents/shop/requests",
                      {"instance": "a", "max": 1, "waitMs": 500, "confirm": []})
        for request in polled["requests"]:
            time.sleep(0.05)  # else a task ends before its progress is seen
            reply = {"step": request["step"], "token": request["token"], **result(request)}
            post("/v1/replies", {"replies": [reply]})
    except OSError:
        time.sleep(0.02)
END
}

definition() { # VERSION STEP_TWO
    cat <<END
document: { dsl: '1.0.3', namespace: test, name: two, version: '$1' }
do:
  - first:
      call: shop
      with: { do: reserve }
      output: { as: '\${ \$workflow.input }' }
      metadata:
        reeve:
          compensate:
            - giveBack: { call: shop, with: { do: release } }
  - second:
      call: shop
      with: { do: '\${ .second }' }
      metadata: { reeve: { $2 } }
END
}

# ---- without a server ----
export REEVE_URL=http://127.0.0.1:1
run tasks
gives "no server: says how to start one" 5 \
    'reeve: no server at http://127.0.0.1:1: start one with "reeve serve", or set REEVE_URL'
run serve --listen 127.0.0.1:0 --store "$PWD/secrets.db" --secrets "$PWD/none"
gives "serve: a folder of secrets that is not there" 3 '--secrets *none: No such file or directory'
run serve --listen 127.0.0.1:0 --store "$PWD/none/reeve.db"
gives "serve: a store in a folder that is not there" 5 'is in a folder that does not exist; create the folder first'
run --url 127.0.0.1:7733 tasks
gives "an address without http" 2 '--url "127.0.0.1:7733" is not a valid address; write http://HOST:PORT'
run --url http://127.0.0.1:abc tasks
gives "an address with a port that is no number" 2 '--url "http://127.0.0.1:abc" is not a valid address; write http://HOST:PORT'
run agent exec a --url http://127.0.0.1:99999 -- true
gives "an agent with a port that is none" 2 'is not valid: write http://HOST:PORT'
run check --help
case $out in *--url*) code=1 ;; esac
gives "a command that asks no server does not list --url" 0 '--store PATH'
run
gives "no command: the list of them" 2 'publish workflow definitions in YAML or JSON'
run help
gives "help lists the commands" 0 'usage: reeve COMMAND'
run help submit
gives "help about one command" 0 '--key-from POINTER'
run submit --help
gives "the same as an option" 0 '--key-from POINTER'
run help serve
gives "help about the server comes from it" 0 '--store'
run version
gives "version" 0 'reeve '
run sumbit
gives "a mistyped command" 2 'unknown command "sumbit"; did you mean "reeve submit"?'
run tasks --stat error
gives "a mistyped option" 2 'reeve tasks: unknown option --stat; did you mean --state?'
run show
gives "a missing argument" 2 'reeve show: TASK is missing; usage: reeve show TASK'

begin_server

# ---- workflows ----
definition 1.0.0 'compensate: none' >two.yaml
definition 1.1.0 'complteBy: PT1S' >wrong.yaml
definition 2.0.0 'failures: { then: error }' >parks.yaml
# Nobody is the agent "nobody": what is submitted in bulk stays where it is.
definition 3.0.0 'compensate: none' | sed 's/call: shop/call: nobody/' >stays.yaml
run workflows
gives "an empty store says what to do" 0 'No workflows are published; publish one: reeve publish FILE'
run publish two.yaml
gives "publish" 0 'test/two:1.0.0 published'
run publish two.yaml
gives "publish again" 0 'test/two:1.0.0 already published'
run publish wrong.yaml
gives "a wrong file: place and cure" 2 \
    'wrong.yaml:14:28: unknown property "complteBy"*did you mean "completeBy"?'
run publish nowhere.yaml parks.yaml stays.yaml
gives "a file that is not there does not stop the others" 3 \
    'test/two:2.0.0 published*3.0.0 published*nowhere.yaml: No such file or directory'
run workflows --json
gives "workflows as JSON" 0 '{"workflows":[*"test/two:1.0.0"*'

# ---- one task ----
run submit test/tow
gives "a workflow that is not there" 3 'test/tow'
run submit two
gives "a name without its namespace" 2 'namespace/name'
run submit test/two --input '{"a":'
gives "input that is not JSON" 2 'reeve submit: --input is not JSON, at byte 6'
run submit test/two --tags city=lisbon
gives "tags that are no JSON" 2 'reeve submit: --tags city=lisbon is not a JSON object'
run submit test/two --tag city
gives "a tag without a value" 2 'reeve submit: --tag city: must be NAME=VALUE'
run serve x.db
gives "a store as an argument" 2 'for the file of the store write --store x.db'
run check --store ''
gives "an empty path of the store" 2 '--store is empty'
run tasks --url http://nohost.invalid:1
gives "an unknown host" 5 'nohost.invalid'
printf '{\n "a": nul\n}' >bad.json
run submit test/two --input @bad.json
gives "an input file that is not JSON: its place" 2 'bad.json:2:7:'
run submit test/two:1.0.0 --key k1 --input '{"second":"charge"}'
task=$out
gives "submit gives the id" 0 '[0-9A-Z]'
run submit test/two:1.0.0 --key k1 --input '{"second":"charge"}'
[ "$out" = "$task" ]
verdict $? "the same key is the same task" "$task"
run submit test/two:1.0.0 --key k1 --input '{}'
gives "the same key with another input" 4 'key'
run show "$task"
gives "show: what it waits for" 0 'first *no instance of the agent is connected'
run show "$task" 1
gives "show: a step, with its input" 0 'step 1 first  pending*agent        shop*input        {'
run show "$task" 1 --json
gives "show: a step as JSON" 0 '{"step":*"input":{*}'
run show "$task" 9
gives "show: a step that is not there" 3 'the task has no step 9'
run show "$task" one
gives "show: a step without a number" 2 'STEP must be the number of a step'
run explain "$task"
gives "explain: whom it waits for" 0 'no instance of the agent is connected*shop: 0 connected'
run tasks --state pending
gives "tasks: a table" 0 "TASK*STATE*$task*pending*test/two:1.0.0*k1"
run tasks --state pendng
gives "tasks: a state that is none" 2 'did you mean "pending"?'
run agents
gives "agents: who is missing" 0 'shop*not known'
run show 0000000000000
gives "a task that is not there" 3 'reeve show: '
run show task-one
gives "an id that is none" 3 '"task-one" is not a task id'
run resubmit "$task"
gives "an operation that the state refuses" 4 'reeve resubmit: '
run cancel "$task" --reason 'not wanted'
gives "cancel" 0 "$task cancelled"
run watch "$task"
gives "watch a cancelled task" 1 "$task cancelled"
run show "$task"
gives "show: why it was cancelled" 0 'cancelled*not wanted'
# A process takes it, and the next one polls under its name: nobody knows what the first has done.
run submit test/two:1.0.0 --input '{"second":"charge"}'
task=$out
for boot in one two; do
    curl -s -d '{"instance":"b","boot":"'$boot'","max":1,"waitMs":0,"poll":"'$boot'"}' \
        "$REEVE_URL/v1/agents/shop/requests" >/dev/null
done
run cancel "$task"
run show "$task"
gives "show: until when nothing is undone" 0 'compensating*the undo waits until * UTC, in *s: '

# ---- with an agent ----
serve_agent &
agent=$!
run submit test/two:1.0.0 --input '{"second":"charge"}' --wait
gives "submit --wait: processed" 0 ' processed in '
run submit test/two:1.0.0 --input '{"second":"charge"}' --watch
gives "submit --watch: each step" 0 'processed*first*processed*second*processed in'
run submit test/two:1.0.0 --input '{"second":"decline"}' --watch
gives "a task that is undone" 1 'giveBack (undoes 1)*compensated in *: declined: no funds'
run submit test/two:2.0.0 --input '{"second":"decline"}' --wait
gives "a task that needs an operator" 6 'error: declined: no funds*The task waits for an operator. To show the cause: reeve show'
task=${out%% *}
task=${task%%$'\n'*}
run show "$task"
gives "show: its alert and what to do" 0 'Alerts*failed*to do:*reeve resubmit'
run explain "$task"
gives "explain: the agent's instances are counted for a step in error, too" 0 \
    'waits for an operator*agent*shop: 2 connected*declined: no funds'
run alerts
gives "alerts" 0 "failed*$task*to do:*reeve explain $task"
run suspend "$task"
run show "$task"
gives "show: a suspended task names its resume" 0 "reeve resume $task*reeve settle $task 2 --done --output null"
run resubmit "$task" --late-seen 99
gives "--late-seen: more than there are" 4 "late replies is 0, not 99*with --late-seen 0"
run resubmit "$task"
run alerts
gives "a suspended task calls until it is resumed" 0 "failed*$task"
run explain "$task"
gives "explain: a suspended task that waits" 0 "reeve resume $task"
run resume "$task"
run watch "$task"
gives "resumed, it fails once more" 6 'declined: no funds'
run alerts
gives "its alert is there anew" 0 "failed*$task*to do:"
run alerts --json
alert=$(jq -r '.alerts[0].alert' <<<"$out")
run alerts ack "$alert"
gives "alerts ack" 0 "$alert acknowledged"
run alerts
gives "an acknowledged alert calls nobody any more" 0 'No open alerts.*reeve alerts --all'
run alerts --all
gives "who looks after an alert" 0 'acknowledged:*by olga'
run show "$task"
gives "show: an acknowledged alert still stands" 0 'Alerts*acknowledged:*by olga'
run resubmit "$task" --reason 'once more'
run watch "$task"
gives "resubmitted in vain" 6 'declined: no funds'
run show "$task"
gives "show: attempts that gave no result, and why" 0 \
    "Unsuccessful attempts*$task-2*1*failed*no funds*$task-2*3*failed*no funds"
run alerts ack
gives "alerts ack without an id" 2 'reeve alerts ack ALERT'
run undo "$task" --reason 'by hand'
gives "undo a task in error" 0 "$task compensat"
run watch "$task"
gives "watch its undo" 1 "$task compensated"
cat >bare.yaml <<END
document: { dsl: '1.0.3', namespace: test, name: bare, version: '1.0.0' }
do:
  - first: { call: shop, with: { do: reserve } }
  - second: { call: shop, with: { do: decline } }
END
run publish bare.yaml
run submit test/bare --wait
bare=${out%% *}
bare=${bare%%$'\n'*}
run cancel "$bare" --abandon
gives "cancel --abandon without its reason" 2 '--reason TEXT is missing'
run undo "$bare" --reason 'a test'
gives "an undo that cannot get through is refused, with the commands that continue it" 4 "reeve undo $bare --by-hand"
run undo "$bare" --by-hand --reason 'a test'
gives "undo --by-hand stops where it needs hands" 0 "$bare error*waits for an operator*reeve show $bare"
run show "$bare"
gives "show names the settlement" 0 "reeve settle $bare 1 --undone"
run show "$bare"
gives "show: what is left when an undo is parked" 0 "reeve cancel $bare --abandon --reason abandoned"
run cancel "$bare" --abandon --reason 'done by hand'
gives "cancel --abandon" 0 "$bare cancelled"
cat >pattern.yaml <<'END'
document: { dsl: '1.0.3', namespace: test, name: pattern, version: '1.0.0' }
do:
  - first: { set: { known: '${ def f: test("^p$"); .name | f }' } }
END
run publish pattern.yaml
gives "publish: a regular expression is refused" 2 'pattern.yaml:3:*regular expressions are not supported'
{
    echo "document: { dsl: '1.0.3', namespace: test, name: long, version: '1.0.0' }"
    echo 'do:'
    echo '  - first: { call: shop, with: { do: reserve } }'
    for number in {2..260}; do
        echo "  - one$number:"
        echo '      { call: shop, with: { do: reserve }, metadata: { reeve: { compensate: none } } }'
    done
} >long.yaml
run publish long.yaml
gives "publish a long workflow" 0 long
run submit test/long --wait
gives "submit a long workflow" 0 processed
long=${out%% *}
long=${long%%$'\n'*}
run undo "$long" --by-hand
until_true in_error "$long"
run show "$long"
gives "show: the step at which a task stands is never left out" 0 \
    "first*... steps not shown: 59*one61*Steps that are not shown: 59.*reeve settle $long 1 --undone"
run tasks --state suspended
gives "tasks: none is suspended" 0 'No matching tasks.'
run suspend "$long"
run tasks --state suspended
gives "tasks: suspended ones are marked and found" 0 "$long*error, suspended*test/long"
run tasks --state suspendet
gives "tasks: no such state" 2 'did you mean "suspended"'
run cancel "$long" --abandon --reason 'done by hand'
run show --json "$task"
[ "$(jq -r .state <<<"$out")" = compensated ]
verdict $? "show --json is the server's JSON" '.state = compensated'
run show --json 0000000000000
[ "$code" = 3 ] && [ "$(jq -r .status <<<"$out")" = 404 ]
verdict $? "a refusal as JSON is the server's problem" '.status = 404'

# ---- many ----
{
    for number in {1..1200}; do
        echo "{\"order\":\"o-$number\",\"second\":\"charge\"}"
    done
    echo '{"order":'
    echo
    echo '{"second":"charge"}'
} >orders.jsonl
run submit test/two --lines orders.jsonl --key-from /order
gives "bulk: lines that are wrong are told, the others are taken" 2 \
    '1,200 accepted, 0 already known, 0 refused, 2 invalid*orders.jsonl:1201:10: not valid JSON: *orders.jsonl:1203: no key at /order'
head -3 orders.jsonl >three.jsonl
run submit test/two --lines three.jsonl --key-from /order
gives "bulk: keys make it safe to repeat" 0 '0 accepted, 3 already known'
"$reeve" submit test/two --lines - --key-from /order --json <three.jsonl >out.txt 2>err.txt
[ $? = 0 ] && [ "$(jq -s 'map(.status) | add' out.txt)" = 600 ]
verdict $? "bulk: from standard input, receipts as JSON" 'three lines of status 200'
run submit test/tow --lines three.jsonl
gives "bulk: a workflow that is not there" 3 'reeve submit: '
run submit test/two --lines three.jsonl --key k
gives "bulk: options that make no sense together" 2 '--key is for a single task and cannot be combined with --lines'
run submit test/two --lines nowhere.jsonl
gives "bulk: a file that is not there" 3 'nowhere.jsonl: No such file or directory'
run tasks --limit 2
gives "a page says how to go on" 0 'To list more: reeve tasks --limit 2 --after '

for limit in 0 1x "" 1000000001 99999999999999999999; do
    run tasks --limit "$limit"
    gives "--limit $limit" 2 "--limit $limit: must be a whole number from 1 to 1000000000"
done

# ---- what tasks are found by ----
run submit test/two --key k-tagged --tags '{"city":"Bonn","quote":"a\" OR 1=1 --"}'
tagged=$out
gives "tags are taken" 0 '[0-9A-Z]'
run tasks --tag city=Bonn
gives "tasks: by a tag" 0 "$tagged"
run tasks --tag 'quote=a" OR 1=1 --' --json
[ "$(jq -s 'length' <<<"$out")" = 1 ]
verdict $? "tasks: a tag is a text, whatever is in it" 'one task'
run tasks --tag "city=x' OR '1'='1"
gives "tasks: a tag that nobody gave" 0 'No matching tasks.'
run tasks --key k-tagged
gives "tasks: by their key" 0 "$tagged"
run tasks --newer PT1H --workflow test/two --agent elsewhere
gives "tasks: at a step of an agent that none asks" 0 'No matching tasks.'
run tasks --newer PT1H --workflow test/two --agent nobody
gives "tasks: by age, workflow and agent" 0 '*pending *test/two:3.0.0*'
run tasks --older P100Y
gives "tasks: there are none from before the calendar" 0 'No matching tasks.'
run tasks --agent inventory --state processed
gives "tasks: a filter that is not offered so" 2 'a state of open tasks'
run tasks --tag city
gives "tasks: a tag without its text" 2 'must be NAME=VALUE'

# ---- on a terminal ----
on_terminal() {
    ran="on a terminal: reeve $*"
    out=$(env -u NO_COLOR TERM=xterm script -qec "$(printf '%q ' "$reeve" "$@")" /dev/null </dev/null)
    code=$?
    err=
}
on_terminal submit test/two:1.0.0 --input '{"second":"charge"}' --watch
gives "a terminal gets a bar, and colours" 0 $'.] [0-2] of 2*\033'
sed 's/o-/p-/' three.jsonl >more.jsonl
on_terminal submit test/two --lines more.jsonl --key-from /order
gives "bulk: a bar with rate and time left" 0 '[[]##*] 3 lines, */s, * left*3 accepted'
on_terminal tasks --limit 1
gives "colours on a terminal" 0 $'\033[2mTASK\033[0m'
run tasks --limit 1
[[ $out != *$'\033'* ]]
verdict $? "no colours elsewhere" 'no escape sequences'

# ---- a restart in the middle ----
touch agent.stop
wait "$agent"
rm agent.stop
run submit test/two:1.0.0 --input '{"second":"charge"}'
task=$out
"$reeve" watch "$task" >watch.out 2>watch.err &
watch=$!
until_true grep -qs first watch.out
end_server
begin_server "${REEVE_URL##*:}"
serve_agent &
agent=$!
wait "$watch"
code=$?
ran="reeve watch, over a restart of the server"
out=$(<watch.out)
err=$(<watch.err)
gives "watch outlives a restart of the server" 0 "$task processed"

echo "1..$count"
exit $red
