#!/bin/sh
# agent.sh NAME COMMAND [ARGUMENT...] - an agent for NAME: COMMAND gets a step's input on stdin and prints its output, both
# JSON; $key is the idempotency key. A failed COMMAND is tried again by the server. Needs curl, jq, timeout.
api=${REEVE_URL:-http://127.0.0.1:7733}/v1 name=$1 boot=$(cat /proc/sys/kernel/random/uuid); shift
export api post="curl -sS --fail -H Content-Type:application/json ${REEVE_API_KEY:+--oauth2-bearer $REEVE_API_KEY} -d @-"
while :; do
    poll=$(cat /proc/sys/kernel/random/uuid) # a lost answer comes again under the same id
    until answer=$(printf '{"instance":"%s","boot":"%s","max":1,"waitMs":20000,"poll":"%s"}' "$(hostname)-$$" "$boot" "$poll" |
        $post --max-time 30 "$api/agents/$name/requests"); do sleep 1; done
    request=$(printf %s "$answer" | jq -c '.requests[0] // empty')
    [ "$request" ] || continue
    export request key="$(printf %s "$request" | jq -r .idempotencyKey)"
    # The deadline is the earlier of complete-by and lease, half a second early for the way. After it: silence.
    timeout -k 1 "$(printf %s "$request" | jq '[([.remainingMs, .leaseMs] | min) / 1000 - 0.5, 0.001] | max')" sh -c '
        output=$(printf %s "$request" | jq -c .input | "$@") && said=output || said=error output="{\"type\":\"failed\",\"transient\":true}"
        reply=$(printf %s "$request" | jq -c --arg said $said --argjson output "$output" "{replies: [{step, token, (\$said): \$output}]}") || exit
        until printf %s "$reply" | $post --max-time 5 "$api/replies" >/dev/null; do sleep 0.2; done # a lost reply is repeated' sh "$@"
done
