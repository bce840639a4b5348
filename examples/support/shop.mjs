// node examples/support/shop.mjs [PORT]: a small shop. GET lists its products, the newest first; POST {name, price} adds one, and with an id changes one.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { listen } from './listen.mjs';

const port = Number(process.argv[2] ?? process.env.SHOP_PORT ?? 4001);
let products = [{ id: 1, name: 'Teapot', price: 17 }];

const server = createServer(async (request, response) => {
  if (request.url !== '/') return response.writeHead(404).end();
  if (request.method === 'POST') {
    const product = { id: products.length + 1, ...(await json(request)) };
    products = [product, ...products.filter(({ id }) => id !== product.id)];
  }
  response.setHeader('content-type', 'application/json').end(JSON.stringify(products));
});
listen(server, { port, variable: 'SHOP_PORT', greeting: 'the shop is open' });
