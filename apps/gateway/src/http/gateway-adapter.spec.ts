import { describe, expect, it } from '@jest/globals';
import fastify from 'fastify';
import { KnownRoutes } from './gateway-adapter.js';

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
