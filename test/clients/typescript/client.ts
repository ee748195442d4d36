// An application and an agent that know the server by what a generator makes of /openapi.json.
// The test reads the line that it prints.
import createClient from "openapi-fetch";
import type { components, paths } from "./reeve.js";

type Schemas = components["schemas"];
declare const process: { env: Record<string, string | undefined> };

const reeve = createClient<paths>({
  baseUrl: process.env["REEVE_URL"] ?? "http://127.0.0.1:7733",
});
const definition = `\
document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}
do:
  - reserve: {call: stock, with: {sku: '\${ .sku }'}}
`;

function fail(problem: Schemas["Problem"]): never {
  throw new Error(`${problem.type} (${problem.status}): ${problem.detail ?? problem.title}`);
}

async function publish(): Promise<string> {
  const { data, error } = await reeve.PUT("/v1/workflows", {
    params: { query: { file: "order.yaml" } },
    headers: { "Content-Type": "application/yaml" },
    body: definition,
    bodySerializer: (text) => text,
  });
  return error ? fail(error) : data.workflow;
}

// Polls until there is a request, and replies to it.
async function agent(name: string): Promise<Schemas["StepRequest"]> {
  const instance: Schemas["PollRequest"] = { instance: "ts-1", boot: "b1", max: 1, waitMs: 10000 };
  for (let poll = 1; ; poll++) {
    const { data, error } = await reeve.POST("/v1/agents/{agent}/requests", {
      params: { path: { agent: name } },
      body: { ...instance, poll: `p${poll}` },
    });
    if (error) fail(error);
    const request = data.requests[0];
    if (request === undefined) continue;
    const reply: Schemas["Reply"] = {
      step: request.step,
      token: request.token,
      output: { reserved: true },
    };
    const replied = await reeve.POST("/v1/replies", { body: { replies: [reply] } });
    if (replied.error) fail(replied.error);
    if (replied.data.results[0]?.status !== 200) throw new Error("the reply does not count");
    return request;
  }
}

// Answers when the task has ended.
async function submit(): Promise<Schemas["SubmissionResult"]> {
  const { data, error } = await reeve.POST("/v1/tasks", {
    params: { query: { wait: "PT20S" }, header: { "Idempotency-Key": "order-1" } },
    body: { workflow: "shop/order", input: { sku: "x-1" }, priority: 3 },
  });
  return error ? fail(error) : data;
}

async function read(task: string): Promise<Schemas["Task"]> {
  const { data, error } = await reeve.GET("/v1/tasks/{task}", { params: { path: { task } } });
  return error ? fail(error) : data;
}

async function refused(): Promise<Schemas["Problem"]> {
  const { error } = await reeve.GET("/v1/workflows/{namespace}/{name}", {
    params: { path: { namespace: "shop", name: "none" } },
  });
  if (error === undefined) throw new Error("shop/none exists");
  const type: Schemas["ProblemType"] = error.type;
  if (type !== "urn:reeve:error:NOT_FOUND") fail(error);
  return error;
}

// What the server would refuse does not compile.
// @ts-expect-error: no such property
const misspelt: Schemas["TaskSubmission"] = { workflow: "shop/order", inptu: {} };
// @ts-expect-error: no such state
const unknown: Schemas["TaskState"] = "done";
// @ts-expect-error: a reply without its token
const incomplete: Schemas["Reply"] = { step: "1", output: {} };
void [misspelt, unknown, incomplete];

const workflow = await publish();
const [submitted, request] = await Promise.all([submit(), agent("stock")]);
if (submitted.task === undefined) throw new Error("the submission has no task");
const task = await read(submitted.task);
const state: Schemas["TaskState"] = task.state;
const { status } = await refused();
console.log(
  JSON.stringify({
    workflow,
    asked: request.input,
    same: request.task === task.task,
    submitted: submitted.state,
    state,
    output: task.output,
    refused: status,
  }),
);
