import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { componentOf, startTestSandbox } from '../sandbox/sandbox-for-tests.js';
import type { Emit, Sandbox } from '../sandbox/sandbox.js';
import { type MockApis, startMockApis } from './mock-apis-for-tests.js';
import { pipedreamFiles, withNeighbours } from './pipedream-package-for-tests.js';
import { PlayedSource } from './played-source-for-tests.js';
import { stories, type Story } from './stories-for-tests.js';

const hosts = [...new Set(stories.flatMap(({ api = {} }) => Object.keys(api).map((route) => /^\S+ ([^/]+)/.exec(route)![1]!)))];

describe('a real component, from one run to the next', () => {
  const files = pipedreamFiles();
  let apis: MockApis;
  let sandbox: Sandbox;
  beforeAll(async () => {
    apis = await startMockApis(hosts);
    sandbox = await startTestSandbox({ allowPrivateHosts: apis.allowed, lookup: apis.lookup, trustedCa: apis.cert });
  });
  afterAll(async () => {
    await sandbox.close();
    apis.close();
  });

  it('is each another one, and they are at least 30', () => {
    expect(new Set(stories.map(({ source }) => source)).size).toBe(stories.length);
    expect(stories.length).toBeGreaterThanOrEqual(30);
  });

  it.each(stories.map((story) => [story.source, story] as const))(
    '%s',
    async (_, { props = {}, api = {}, activate, deactivate, steps, keeps = {} }: Story) => {
      apis.play(api);
      const source = await play(_, props);
      if (activate) {
        await source.hook('activate');
        expect(calls()).toEqual(activate);
      }
      for (const { request, emits, reply } of steps) {
        const kept = typeof request === 'function' ? request(source.kept) : request;
        const played = await (kept ? source.request(kept) : source.tick());
        expect(played.emits.map(shown)).toEqual(emits.map(matching));
        expect(played.reply).toEqual(replyLike(reply));
      }
      expect(source.kept).toMatchObject(keeps);
      calls();
      if (deactivate) {
        await source.hook('deactivate');
        expect(calls()).toEqual(deactivate);
      }
    },
  );

  /** The component as it is, but for the port of the APIs: no test may listen on 443. */
  const play = async (path: string, props: Record<string, unknown>): Promise<PlayedSource> => {
    const bundled = await sandbox.bundle(withNeighbours(path, files));
    const code = withPort(bundled);
    return new PlayedSource(sandbox, code, await sandbox.inspect(componentOf(code)), JSON.parse(withPort(JSON.stringify(props))));
  };
  const withPort = (text: string): string => text.replace(/https:\/\/(?:\$\{[^}]*\}(?=\.)|[\w.-])+/g, (origin) => `${origin}:${apis.port}`);
  const calls = (): string[] => apis.taken().map(({ to }) => to);
});

const shown = ({ summary, event }: Emit): string => summary ?? event;

/** `beginning…` stands for any text that begins so. */
const matching = (text: string): unknown => (text.endsWith('…') ? expect.stringContaining(text.slice(0, -1)) : text);

const replyLike = (reply: { status: number; body?: string } | undefined): unknown => (reply ? expect.objectContaining(reply) : null);
