import { describe, expect, it } from '@jest/globals';
import fastify from 'fastify';
import { createLog } from '#observability';
import { GatewayAdapter, KnownRoutes } from './gateway-adapter.js';

it('a client that sends its headers slowly is disconnected after ten seconds, and one that sends its body slowly after a minute', () => {
  const { server } = new GatewayAdapter(1024, createLog('test', 'silent')).getInstance();
  expect([server.requestTimeout, server.headersTimeout]).toEqual([60_000, 10_000]);
});

describe('known routes', () => {
  const app = fastify();
  const routes = new KnownRoutes(app);
  app.get('/v1/sources/:id', () => '');
  app.put('/v1/sources/:id', () => '');
  app.get('/v1/workflows/:id/$errors/event_summaries', () => '');

  it.each([
    ['/v1/sources/dc_1', ['GET', 'HEAD', 'PUT']],
    ['/v1/sources/dc_1/', ['GET', 'HEAD', 'PUT']],
    ['/v1/sources', []],
    ['/v1/sources/dc_1/more', []],
    ['/v1/workflows/p_1/$errors/event_summaries', ['GET', 'HEAD']],
  ])('%s has %j', (path, methods) => expect(routes.methodsOf(path)).toEqual(methods));
});
