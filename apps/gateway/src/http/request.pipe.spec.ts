import { describe, expect, it } from '@jest/globals';
import { IsOptional, IsString } from 'class-validator';
import { RequestPipe } from './request.pipe.js';

class Body {
  @IsOptional() @IsString() name?: string;
}

describe('a request body', () => {
  const read = (value: unknown, type: 'body' | 'query' = 'body') => new RequestPipe().transform(value, { type, metatype: Body });

  it('with an unknown field is refused, with a suggestion', async () => {
    await expect(read({ nmae: 'a' })).rejects.toMatchObject({
      code: 'invalid',
      details: { errors: [{ field: 'nmae', message: 'unknown field "nmae"; did you mean name?' }] },
    });
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
});
