import { expect, it } from '@jest/globals';
import type { FastifyRequest } from 'fastify';
import { loggedUrl } from './problem.js';

it.each([
  ['/v1/users/me', '/v1/users/me'],
  ['/v1/webhooks?url=https%3A%2F%2Fuser%3Asecret%40example.com%2F&name=a=b&name', '/v1/webhooks?url=…&name=…&name'],
])('logs %s without the values of its query', (url, logged) => expect(loggedUrl({ url } as FastifyRequest)).toBe(logged));
