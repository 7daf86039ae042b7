// A client of npm's own SDK: starts the server that its arguments name, and prints what it says as one JSON document.
// Its first argument is the folder of the SDK; an elicitation is answered with "accept".
import { pathToFileURL } from "node:url";

const [sdk, command, ...args] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${sdk}/dist/esm/${path}`).href);
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { ElicitRequestSchema } = await load("types.js");

const client = new Client({ name: "npm", version: "1" }, { capabilities: { elicitation: {} } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: {} };
});
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }));
const { tools } = await client.listTools();
const told = [];
for (const request of ["please knock", "now force"])
  told.push(await client.callTool({ name: "request", arguments: { request } }));
console.log(JSON.stringify({ server: client.getServerVersion(), tools, told, asked }));
await client.close();
