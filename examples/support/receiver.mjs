// node examples/support/receiver.mjs [PORT]: a receiver of webhooks. It verifies each delivery if WEBHOOK_SECRET is set, and prints its event.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';

const port = Number(process.argv[2] ?? process.env.PORT ?? 4000);
const webhook = process.env.WEBHOOK_SECRET ? new Webhook(process.env.WEBHOOK_SECRET) : undefined;

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
server.listen(port, '127.0.0.1', () => console.log(`receiving webhooks at http://localhost:${server.address().port}/`));
