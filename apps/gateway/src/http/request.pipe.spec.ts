import { describe, expect, it } from '@jest/globals';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { IsOptional, IsString } from 'class-validator';
import { Parameters, RequestPipe } from './request.pipe.js';

class Body {
  @IsOptional() @IsString() name?: string;
}

describe('a request body', () => {
  const read = (value: unknown, type: 'body' | 'query' = 'body') => new RequestPipe().transform(value, { type, metatype: Body });

  it('an unknown field is refused, with a suggestion', async () => {
    await expect(read({ nmae: 'a' })).rejects.toMatchObject({
      code: 'invalid',
      details: { errors: [{ field: 'nmae', message: 'unknown field "nmae"; did you mean name?' }] },
    });
  });

  it('has a short error if several fields are unknown, because it lists the known ones once', async () => {
    const messages = ['unknown field "id"; known are name, include, exclude', 'unknown field "user_id"', 'unknown field "created_at"'];
    await expect(read({ id: 1, user_id: 2, created_at: 3 })).rejects.toThrow(messages.join('; '));
  });

  it('lists its invalid fields beside the unknown ones', async () => {
    await expect(read({ name: 5, colour: 1 })).rejects.toMatchObject({ details: { errors: [{ field: 'name' }, { field: 'colour' }] } });
  });

  it.each([[{ name: 'a', include: 'id', exclude: 'name' }], [undefined], [Buffer.from('{"x":1}')]])('may be %j', async (value) => {
    await expect(read(value)).resolves.not.toThrow();
  });

  it('is stricter than a query, whose unknown parameters are ignored', async () => {
    await expect(read({ nmae: 'a' }, 'query')).resolves.toEqual({});
  });

  it('says which parameter of a query occurs more than once', async () => {
    const errors = [{ field: 'name', message: 'name must be given only once' }];
    await expect(read({ name: ['a', 'a'] }, 'query')).rejects.toMatchObject({ details: { errors } });
    await expect(read({ name: ['a', 'a'] })).rejects.not.toMatchObject({ details: { errors } });
    await expect(read({ name: 'a', other: ['a', 'a'] }, 'query')).resolves.toEqual({ name: 'a' });
  });
});

describe('parameters', () => {
  class Route {
    read(@Parameters(Body) _: Body): void {}
  }
  const [{ factory, data }] = Object.values<any>(Reflect.getMetadata(ROUTE_ARGS_METADATA, Route, 'read') as object) as [any];
  const read = (request: object): unknown => factory(data, { switchToHttp: () => ({ getRequest: () => request }) });

  it('come in the query or in the body, and the query wins', () => {
    expect(read({ method: 'POST', query: { name: 'q' }, body: { name: 'b', include: 'id' } })).toEqual({ name: 'q', include: 'id' });
  });

  it('may be unknown in a query, but not mistyped', () => {
    expect(read({ method: 'POST', query: { user_id: 'u_1', _: '5' } })).toEqual({ user_id: 'u_1', _: '5' });
    for (const name of ['nmae', 'Name', 'na-me', 'inclde'])
      expect(() => read({ method: 'POST', query: { [name]: 'a', _: '5' } })).toThrow(
        new RegExp(`^unknown parameter "${name}"; did you mean \\w+\\?$`),
      );
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`other_${at}`, 'a']));
    expect(() => read({ method: 'POST', query: { ...many, nmae: 'a' } })).toThrow('did you mean name?');
  });

  it('may not have unknown names in the query of a DELETE, which would delete more', () => {
    expect(() => read({ method: 'DELETE', query: { nmae: 'a' } })).toThrow('unknown parameter "nmae"; did you mean name?');
    expect(() => read({ method: 'DELETE', query: { colour: 'a' } })).toThrow(
      'unknown parameter "colour"; known are name, include, exclude',
    );
    expect(() => read({ method: 'DELETE', query: {}, body: { nmae: 'a' } })).toThrow('unknown field "nmae"; did you mean name?');
    expect(read({ method: 'DELETE', query: { name: 'a', exclude: 'b' } })).toEqual({ name: 'a', exclude: 'b' });
  });

  it('are refused if they occur more than once in a query, unless their name is unknown', () => {
    expect(() => read({ method: 'POST', query: { name: ['a', 'b'] }, body: { name: 'a' } })).toThrow('name must be given only once');
    expect(read({ method: 'POST', query: { other: ['a', 'b'] } })).toEqual({ other: ['a', 'b'] });
  });
});
