import { cpuSeconds } from '#testing';
import { describe, expect, it } from '@jest/globals';
import { multipartFields } from './multipart.js';

const part = (headers: string, content: string) => `--X\r\n${headers}\r\n\r\n${content}\r\n`;
const named = (rest: string) => `Content-Disposition: form-data; ${rest}`;
const form = (...parts: string[]) => Buffer.from(`${parts.join('')}--X--\r\n`);
const TYPE = 'multipart/form-data; boundary=X';
const fieldsOf = (body: Buffer, contentType = TYPE) => multipartFields(contentType, body);

/** As Node's own parser reads it, which `Response.formData` uses. */
async function asNode(body: Buffer): Promise<unknown> {
  const headers = { 'content-type': TYPE };
  const entries = [...(await new Response(new Uint8Array(body), { headers }).formData())].map(([name, value]): [string, unknown] => [
    name,
    typeof value === 'string' ? value : { filename: value.name, type: value.type, size: value.size },
  ]);
  return Object.fromEntries(entries);
}

describe('the fields of a form', () => {
  it.each<[string, Buffer]>([
    ['a field', form(part(named('name="a"'), '1'))],
    ['an empty field', form(part(named('name="a"'), ''))],
    ['an empty form', form()],
    ['line ends', form(part(named('name="a"'), '\r\n1\r\n\r\n--x\r\n'))],
    ['a name without quotes', form(part(named('name=a'), '1'))],
    ['a name with escaped characters', form(part(named('name="a%22%0d%0A%41;=b"'), '1'))],
    ['a name in a file name', form(part(named('filename="; name=b"; name="a"'), '1'))],
    ['text', form(part(named('name="ä"'), '€😀'))],
    ['headers in lower case', form(part('content-disposition:form-data;name="a"', '1'))],
    ['a file', form(part(`${named('name="a"; filename="b.txt"')}\r\nContent-Type: Text/HTML; charset=utf-8`, '€'))],
    ['a file without a type', form(part(named('name="a"; filename="b"'), '1'))],
    ['a file without a name', form(part(named('name="a"; filename=""'), ''))],
    ['a file name in another encoding', form(part(named(`name="a"; filename="b"; filename*=UTF-8''n%C3%A4me`), '1'))],
    ['base64', form(part(`${named('name="a"')}\r\nContent-Transfer-Encoding: base64`, 'aGVsbG8='))],
    ['other headers', form(part(`X-A: 1\r\n${named('name="a"')}\r\nX-B: 2`, '1'))],
    ['text before and after the parts', Buffer.concat([Buffer.from('hello\r\n'), form(part(named('name="a"'), '1')), Buffer.from('bye')])],
    ['the name __proto__', form(part(named('name="__proto__"'), '1'))],
  ])('are those that Node reads: %s', async (_, body) => {
    expect(Object.entries(fieldsOf(body) ?? {})).toEqual(Object.entries((await asNode(body)) as object));
  });

  it.each<[string, Buffer, string]>([
    ['no boundary', form(), 'multipart/form-data'],
    ['another boundary', form(), 'multipart/form-data; boundary=Y'],
    ['no end', Buffer.from(part(named('name="a"'), '1')), TYPE],
    ['a part without a name', form(part('X-A: 1', '1')), TYPE],
    ['a part that is not a field', form(part('Content-Disposition: attachment; name="a"', '1')), TYPE],
    ['a part without headers', Buffer.from('--X\r\n\r\n1\r\n--X--\r\n'), TYPE],
    ['nothing', Buffer.alloc(0), TYPE],
  ])('are undefined if the body has %s', (_, body, contentType) => expect(fieldsOf(body, contentType)).toBeUndefined());

  it('may have a boundary in quotes', () => {
    expect(fieldsOf(form(part(named('name="a"'), '1')), 'multipart/form-data; charset=utf-8; boundary="X"')).toEqual({ a: '1' });
  });

  it.each([
    ['name="size 27\\" screen"', 'size 27" screen'],
    ['name="c:\\\\dir"', 'c:\\dir'],
    ['name="c:\\dir\\file"', 'c:\\dir\\file'],
    ['name="c:\\dir\\"; filename*=x', 'c:\\dir\\'],
    ['name="a\\" ; x="b"', 'a\\'],
  ])('have a name with backslashes as Go and curl escape it, or as Internet Explorer did not: %s', (rest, name) => {
    expect(fieldsOf(form(part(named(rest), '1')))).toEqual({ [name]: '1' });
  });

  it('are a list if they have the same name', () => {
    expect(fieldsOf(form(...['1', '2', '3'].map((value) => part(named('name="a"'), value))))).toEqual({ a: ['1', '2', '3'] });
  });

  it.each([
    ['files', part(named('name="a"; filename=""'), '')],
    ['fields of the same name', part(named('name="a"'), '')],
    ['parameters', part(named(`name="a"${';a="'.repeat(3000)}`), '')],
    ['semicolons', part(named(`name="a"${'; '.repeat(6000)}`), '')],
    ['beginnings of delimiters', part(named('name="a"'), '\r\n--'.repeat(3000))],
  ])('take time in proportion to the body: %s', async (_, repeated) => {
    const body = form(...Array.from({ length: Math.floor(4_000_000 / repeated.length) }, () => repeated));
    expect(await cpuSeconds(() => fieldsOf(body))).toBeLessThan(2);
  });
});
