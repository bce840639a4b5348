// Nest's own Kafka client and server with stock settings, for comparison: `service` echoes, `gateway` sends it each HTTP request.
import { ClientKafka, ServerKafka } from '@nestjs/microservices';
import { createServer } from 'node:http';
import { firstValueFrom } from 'rxjs';

const [, , role, brokers = '', port = '0'] = process.argv;
const client = { clientId: `stock-${role}`, brokers: [brokers], logLevel: 1 };

if (role === 'service') {
  const server = new ServerKafka({ client, consumer: { groupId: 'stock-service' } });
  server.addHandler('stock.echo', async (/** @type {unknown} */ payload) => payload, false);
  await new Promise((resolve) => void server.listen(resolve));
} else {
  const requester = new ClientKafka({ client, consumer: { groupId: 'stock-gateway' } });
  requester.subscribeToResponseOf('stock.echo');
  await requester.connect();
  const http = createServer((_request, response) => {
    firstValueFrom(requester.send('stock.echo', { text: 'x'.repeat(300) })).then(
      (data) => response.setHeader('content-type', 'application/json').end(JSON.stringify({ data })),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise((resolve) => http.listen(Number(port), '127.0.0.1', () => resolve(undefined)));
}
process.on('disconnect', () => process.exit(0));
process.send?.('ready');
