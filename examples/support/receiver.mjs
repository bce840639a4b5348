// node examples/support/receiver.mjs [PORT [SECRET]]: a receiver of webhooks. It prints the event of each delivery. With a SECRET, it verifies the signatures.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { listen } from './listen.mjs';

const [port = process.env.PORT ?? 4000, secret] = process.argv.slice(2);
const webhook = secret ? new Webhook(secret) : undefined;

const server = createServer(async (request, response) => {
  const body = await text(request);
  try {
    webhook?.verify(body, request.headers);
    console.log(`received ${body}`);
    response.writeHead(204).end();
  } catch (error) {
    console.log(`refused: ${error.message}`);
    response.writeHead(401).end();
  }
});
listen(server, { port: Number(port), variable: 'PORT', greeting: 'receiving webhooks' });
