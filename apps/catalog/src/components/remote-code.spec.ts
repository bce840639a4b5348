import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { bundleComponent, Invalid, Unavailable } from '#contracts';
import { Messages } from '#messaging';
import { cpuSeconds, FakeMessages } from '#testing';
import { CatalogConfig } from '../catalog.config.js';
import { Absent, CodeFetcher, Unreadable } from './code-fetcher.js';
import { RemoteCode } from './remote-code.js';

const ORIGIN = 'https://code.test';
/** In place of code: the reason why it cannot be read. */
const REASONS = ['returned status 503', 'has more than 1000 bytes', 'is not UTF-8'];

describe('code from a URL', () => {
  let web: Record<string, string | Promise<string>>;
  let fetched: string[];
  let messages: FakeMessages;
  let remote: RemoteCode;
  let fetcher: CodeFetcher;
  let until: number;

  beforeEach(async () => {
    web = {};
    fetched = [];
    until = Date.now() + 50_000;
    messages = new FakeMessages().replyTo(bundleComponent, ({ entry, files }) => ({
      code: `// ${entry} with ${Object.keys(files).sort().join(', ')}`,
    }));
    const fetch = async (text: string, ending?: AbortSignal) => {
      const url = new URL(text);
      fetched.push(url.pathname);
      const served = web[url.pathname];
      const aborted = new Promise<never>((_, reject) => ending?.addEventListener('abort', () => reject(new Invalid(`${text} timed out`))));
      const code = await Promise.race([served, aborted]);
      if (code === undefined) throw new Absent('returned status 404');
      if (REASONS.includes(code)) throw new Unreadable(code);
      return { code, url };
    };
    const module = await Test.createTestingModule({
      providers: [
        RemoteCode,
        { provide: CodeFetcher, useValue: { fetch } },
        { provide: Messages, useValue: messages },
        { provide: CatalogConfig, useValue: Object.assign(CatalogConfig.read({}), { maxCodeBytes: 1000 }) },
      ],
    }).compile();
    remote = module.get(RemoteCode);
    fetcher = module.get(CodeFetcher);
  });

  const read = (path: string) => remote.read('u_1', `${ORIGIN}${path}`, until);

  it('is returned as it is when it imports no neighbour', async () => {
    web['/a.mjs'] = 'import axios from "axios"; export default {}';
    expect(await read('/a.mjs')).toBe(web['/a.mjs']);
    expect(messages.requests).toEqual([]);
  });

  it('is refused when its files have more than 4 MiB as JSON, before all of them are fetched', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `./${n}.mjs`);
    web['/a.mjs'] = names.map((name) => `import "${name}";`).join('');
    // six bytes each in JSON
    for (const name of names) web[name.slice(1)] = '\u0001'.repeat(100_000);
    await expect(read('/a.mjs')).rejects.toThrow('more than 4 MiB');
    expect(fetched).toHaveLength(8);
    expect(messages.requests).toEqual([]);
  });

  it('is bundled with its neighbours and theirs, each fetched once', async () => {
    Object.assign(web, {
      '/sources/new/new.mjs': 'import app from "../../app.mjs"; import common from "../common/common.mjs"; export default {}',
      '/sources/common/common.mjs': 'import app from "../../app.mjs"; import text from "./text.mjs"; export default {}',
      '/sources/common/text.mjs': 'export default ""',
      '/app.mjs': 'export default {}',
    });
    expect(await read('/sources/new/new.mjs')).toBe(
      '// sources/new/new.mjs with app.mjs, sources/common/common.mjs, sources/common/text.mjs, sources/new/new.mjs',
    );
    expect(fetched.sort()).toEqual(Object.keys(web).sort());
  });

  it.each([
    ['/comp', './comp/helper.mjs', 'comp.ts', 'comp.ts, comp/helper.mjs'],
    ['/comp', './comp.ts', 'comp.mjs', 'comp.mjs, comp.ts'],
    ['/dir/', './helper.mjs', 'dir/index.ts', 'dir/helper.mjs, dir/index.ts'],
    ['/', './helper.mjs', 'index.ts', 'helper.mjs, index.ts'],
    ['/raw.php', './helper.mjs', 'raw.php.ts', 'helper.mjs, raw.php.ts'],
    [`/a/${'l'.repeat(300)}`, './b.mjs', `a/${'l'.repeat(197)}.ts`, `a/b.mjs, a/${'l'.repeat(197)}.ts`],
  ])('is bundled as a file in the same folder, whatever the path of its URL: %s', async (url, neighbour, entry, files) => {
    Object.assign(web, { [url]: `import "${neighbour}"`, [new URL(neighbour, ORIGIN + url).pathname]: '' });
    expect(await read(url)).toBe(`// ${entry} with ${files}`);
  });

  it('finds neighbours without an ending, as Node does', async () => {
    Object.assign(web, { '/a.js': 'require("./lib"); require("./other")', '/lib/index.js': '', '/other.ts': '' });
    expect(await read('/a.js')).toBe('// a.js with a.js, lib/index.js, other.ts');
  });

  it('finds neighbours of TypeScript, which are imported by the names of their output or of their folder', async () => {
    Object.assign(web, { '/a.ts': 'import "./helper.js"; import "./lib"; import "./lib/"', '/helper.ts': '', '/lib/index.ts': '' });
    expect(await read('/a.ts')).toBe('// a.ts with a.ts, helper.ts, lib/index.ts');
  });

  it.each([
    ['keeps its source map', 100, true],
    ['loses its source map if it would exceed the limit with it', 2000, false],
  ])('%s', async (_, length, isKept) => {
    const map = `\n//# sourceMappingURL=data:application/json;base64,${'A'.repeat(length)}\n`;
    messages.replyTo(bundleComponent, () => ({ code: `export default {};${map}` }));
    Object.assign(web, { '/a.mjs': 'import "./b.mjs";', '/b.mjs': '' });
    expect(await read('/a.mjs')).toBe(`export default {};${isKept ? map : '\n'}`);
  });

  it('loses its source map in linear time, whatever the code contains', async () => {
    const code = `export default \`\n//# sourceMappingURL=${' '.repeat(500_000)}x\`;`;
    messages.replyTo(bundleComponent, () => ({ code: `${code}\n//# sourceMappingURL=data:,\n` }));
    Object.assign(web, { '/a.mjs': 'import "./b.mjs";', '/b.mjs': '' });
    let answer = '';
    expect(await cpuSeconds(async () => (answer = await read('/a.mjs')))).toBeLessThan(2);
    expect(answer).toBe(`${code}\n`);
  });

  it('is read in linear time, however long a part of its path is', async () => {
    const path = `/${'a'.repeat(100_000)}/b.mjs`;
    Object.assign(web, { [path]: 'import "./c.mjs";', [path.replace('b.mjs', 'c.mjs')]: '' });
    expect(await cpuSeconds(() => read(path))).toBeLessThan(2);
  });

  it.each([
    ['./my file.mjs', '/my%20file.mjs', 'my file.mjs'],
    ['./gr%C3%B6%C3%9Fe.mjs', '/gr%C3%B6%C3%9Fe.mjs', 'größe.mjs'],
    ['./größe.mjs', '/gr%C3%B6%C3%9Fe.mjs', 'größe.mjs'],
    ['./a%2Fb.mjs', '/a%2Fb.mjs', 'a%2Fb.mjs'],
    ['./100%.mjs', '/100%.mjs', '100%.mjs'],
  ])('finds the neighbour %s under the name that it has in the import, and in the URL', async (specifier, pathname, name) => {
    Object.assign(web, { '/a.mjs': `import ${JSON.stringify(specifier)}; export default {}`, [pathname]: 'export {}' });
    expect((await read('/a.mjs')).split(/ with |, /).sort()).toEqual([...new Set(['// a.mjs', 'a.mjs', name, pathname.slice(1)])].sort());
  });

  it.each(REASONS)('takes no other file in place of a neighbour that %s, and says so if it is needed', async (reason) => {
    Object.assign(web, { '/a.mjs': 'import "./lib"; export default {}', '/lib.ts': reason, '/lib.js': 'export {}' });
    expect(await read('/a.mjs')).toBe('// a.mjs with a.mjs');
    messages.replyTo(bundleComponent, () => {
      throw new Invalid('Could not resolve "./lib"');
    });
    await expect(read('/a.mjs')).rejects.toThrow(`component_url imports ${ORIGIN}/lib.ts, which ${reason}`);
  });

  it('comes to an end where files import each other', async () => {
    Object.assign(web, { '/a.mjs': 'import "./b.mjs"', '/b.mjs': 'import "./a.mjs"' });
    expect(await read('/a.mjs')).toBe('// a.mjs with a.mjs, b.mjs');
  });

  it('leaves a missing neighbour to the bundler, which knows file and line', async () => {
    Object.assign(web, { '/a.mjs': '// import "./example.mjs"\nimport "./b.mjs"', '/b.mjs': '' });
    expect(await read('/a.mjs')).toBe('// a.mjs with a.mjs, b.mjs');
  });

  it('fails when the entry cannot be fetched', async () => {
    await expect(read('/none.mjs')).rejects.toMatchObject({ code: 'invalid' });
  });

  it('fails when a neighbour cannot be fetched for a reason that is not the author’s', async () => {
    web['/a.mjs'] = 'import "./b.mjs"';
    Object.defineProperty(web, '/b.mjs', {
      get: () => {
        throw new Unavailable('no sockets');
      },
    });
    await expect(read('/a.mjs')).rejects.toMatchObject({ code: 'unavailable' });
  });

  it.each([
    [50, true],
    [51, false],
  ])('may have 50 neighbours: %i', async (neighbours, isAccepted) => {
    const count = neighbours + 1;
    for (let n = 0; n < count; n++) web[`/${n}.mjs`] = n + 1 < count ? `import "./${n + 1}.mjs"` : '';
    const result = await read('/0.mjs').then(
      () => 'accepted',
      (error: Invalid) => error.details.errors?.[0]?.field,
    );
    expect(result).toBe(isAccepted ? 'accepted' : 'component_url');
  });

  it('is refused after 200 requests, however many neighbours are missing', async () => {
    web['/a.mjs'] = Array.from({ length: 1000 }, (_, n) => `import "./missing-${n}"`).join('\n');
    await expect(read('/a.mjs')).rejects.toMatchObject({
      code: 'invalid',
      details: { errors: [{ field: 'component_url', message: expect.stringContaining('too many files') }] },
    });
    expect(fetched).toHaveLength(200);
  });

  it('is refused if a file has more than 1000 imports', async () => {
    Object.assign(web, { '/a.mjs': 'import "./b.mjs"', '/b.mjs': Array.from({ length: 1001 }, (_, n) => `import"./a.mjs?${n}"`).join('') });
    await expect(read('/a.mjs')).rejects.toMatchObject({
      details: { errors: [{ field: 'component_url', message: expect.stringContaining('more than 1000 imports') }] },
    });
  });

  it('is read in no time if its files import each other under many names', async () => {
    const imports = Array.from({ length: 990 }, (_, n) => `import"./${n % 2 ? 'x/../' : ''}a.mjs?${n}"`).join('');
    for (let n = 1; n < 50; n++) web[`/${n}.mjs`] = imports;
    web['/a.mjs'] = Array.from({ length: 49 }, (_, n) => `import "./${n + 1}.mjs"`).join(';');
    let answer = '';
    expect(await cpuSeconds(async () => (answer = await read('/a.mjs')))).toBeLessThan(2);
    expect(answer).toContain('// a.mjs with 1.mjs');
    expect(fetched).toHaveLength(50);
  });

  it('is fetched with the query of the import', async () => {
    const urls: string[] = [];
    Object.assign(web, { '/a.mjs': 'import "./b.mjs?v=2"; import "./b.mjs?v=3"', '/b.mjs': '' });
    jest
      .spyOn(fetcher, 'fetch')
      .mockImplementation(async (text) => (urls.push(text), { code: web[new URL(text).pathname] as string, url: new URL(text) }));
    expect(await read('/a.mjs')).toBe('// a.mjs with a.mjs, b.mjs');
    expect(urls).toEqual([`${ORIGIN}/a.mjs`, `${ORIGIN}/b.mjs?v=2`]);
  });

  it('is not read any longer than its caller waits', async () => {
    until = Date.now() + 50;
    web['/slow.mjs'] = new Promise(() => {});
    await expect(read('/slow.mjs')).rejects.toMatchObject({ code: 'timeout' });
  });

  it('is bundled only as long as its caller waits', async () => {
    until = Date.now() + 5000;
    Object.assign(web, { '/a.mjs': 'import "./b.mjs"', '/b.mjs': '' });
    await read('/a.mjs');
    expect(messages.requests[0]?.timeoutMs).toBeLessThanOrEqual(5000);
  });

  it('is read for at most four callers of an account at a time', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<string>();
    Object.defineProperty(web, '/slow.mjs', { get: () => released });
    web['/fast.mjs'] = '';
    const slow = Array.from({ length: 4 }, () => read('/slow.mjs'));
    await expect(read('/fast.mjs')).rejects.toMatchObject({ code: 'too_many_requests' });
    expect(await remote.read('u_2', `${ORIGIN}/fast.mjs`, until)).toBe('');
    release('');
    await Promise.all(slow);
    expect(await read('/fast.mjs')).toBe('');
  });
});
