import { describe, expect, it } from '@jest/globals';
import type { FastifyRequest } from 'fastify';
import { fieldSelection, requestedFields, selectFields } from './fields.js';

const resource = { id: 1, name: 'n', url: 'u' };
const select = (include: unknown, exclude: unknown) => {
  const selection = fieldSelection(include, exclude);
  return selection ? selectFields(resource, selection) : resource;
};

describe('include and exclude', () => {
  it.each([
    [undefined, undefined, resource],
    ['id,name', undefined, { id: 1, name: 'n' }],
    [' id , name ', undefined, { id: 1, name: 'n' }],
    [undefined, 'url', { id: 1, name: 'n' }],
    ['id,url', 'url', { id: 1 }],
    ['', '', resource],
    [',', undefined, resource],
    ['nothing', undefined, {}],
    [undefined, 'nothing', resource],
    [['id', 'url'], undefined, { id: 1, url: 'u' }],
  ])('include=%j exclude=%j', (include, exclude, expected) => expect(select(include, exclude)).toEqual(expected));

  it.each([
    ['id', 'id'],
    [undefined, 'url'],
    ['', 'url'],
  ])('include=%j in the query, and `url` in the body, select %s', (include, field) => {
    const request = { query: { include }, body: { include: 'url' } } as FastifyRequest;
    expect(requestedFields(request)?.include).toEqual(new Set([field]));
  });

  it('values of another type are refused', () => expect(() => select(5, undefined)).toThrow('include must be comma-separated field names'));
});
