import { describe, expect, it } from '@jest/globals';
import { SluiceError, type SluiceClient, type Source } from '@sluice/client';
import { chosenComponent, deployed } from './deploy.js';

it('names the source that has a prop of its former component, and the remedy', async () => {
  const before = { id: 'dc_1', name: 'orders', name_slug: 'orders', configured_props: { bodyOnly: true } };
  const sluice = {
    each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
      yield* (await page({})).data;
    },
    listSources: async () => ({ data: [before] }),
    patchSource: async () => {
      throw new SluiceError(400, {
        detail: 'configured_props.bodyOnly is not a prop of this component; configured_props.typo is not a prop of this component',
      });
    },
  } as unknown as SluiceClient;
  await expect(deployed(sluice, 'orders', { key: 'manual', configured_props: { typo: 1 } })).rejects.toThrow(
    '; the source orders has bodyOnly from its present component: remove with -p bodyOnly=null, or deploy with another --name',
  );
  await expect(deployed(sluice, 'orders', { configured_props: { bodyOnly: 1 } })).rejects.toThrow(/is not a prop of this component$/);
});

it('changes none of several sources that have the name', async () => {
  const named = (id: string, name_slug: string): object => ({ id, name: 'twin', name_slug, configured_props: {} });
  const sluice = {
    each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
      yield* (await page({})).data;
    },
    listSources: async () => ({ data: [named('dc_2', 'twin-1'), named('dc_1', 'twin')] }),
  } as unknown as SluiceClient;
  await expect(deployed(sluice, 'twin', { key: 'manual' })).rejects.toThrow(
    'several sources are called twin: twin-1 (dc_2), twin (dc_1); sluice update ID --code changes one of them',
  );
});

it('looks again when several sources have the name, because commands that have created them at the same time keep one', async () => {
  const first = { id: 'dc_1', name: 'race', name_slug: 'race', configured_props: {} };
  const looks = [[{ ...first, id: 'dc_2', name_slug: 'race-1' }, first], [first]];
  const sluice = {
    each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
      yield* (await page({})).data;
    },
    listSources: async () => ({ data: looks.shift() }),
    patchSource: async () => ({ data: first }),
  } as unknown as SluiceClient;
  expect(await deployed(sluice, 'race', { key: 'manual' })).toEqual({ source: first, outcome: 'unchanged' });
});

describe('commands that deploy one new name at the same time', () => {
  type Created = Pick<Source, 'id' | 'name' | 'name_slug' | 'configured_props'>;

  /** An account in which three commands have looked for the name before the first of them creates a source. */
  function account(sources: Created[]): SluiceClient {
    let looks = 0;
    let go = (): void => {};
    const allHaveLooked = new Promise<void>((done) => (go = done));
    const sourceOf = ({ path }: { path: { id: string } }): Created => sources.find(({ id }) => id === path.id)!;
    return {
      each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
        yield* (await page({})).data;
      },
      listSources: async () => {
        const data = sources.toReversed();
        if (++looks === 3) go();
        await allHaveLooked;
        return { data };
      },
      createSource: async ({ body: { name, configured_props } }: { body: Created }) => {
        const taken = sources.map(({ name_slug }) => name_slug);
        let name_slug = name;
        for (let n = 1; taken.includes(name_slug); n++) name_slug = `${name}-${n}`;
        const source = { id: `dc_${name_slug}`, name, name_slug, configured_props };
        sources.push(source);
        return { data: source };
      },
      deleteSource: async (request: { path: { id: string } }) => sources.splice(sources.indexOf(sourceOf(request)), 1),
      patchSource: async ({ body, ...request }: { path: { id: string }; body: object }) => {
        const source = { ...sourceOf(request), ...body };
        sources.splice(sources.indexOf(sourceOf(request)), 1, source);
        return { data: source };
      },
    } as unknown as SluiceClient;
  }

  it.each([
    ['race', []],
    ['race-2', ['race', 'race-1']],
  ])('create one source, which the others change: %s beside %j', async (name, others) => {
    const sources = others.map((other) => ({ id: `dc_${other}`, name: other, name_slug: other, configured_props: {} }));
    const before = [...sources];
    const sluice = account(sources);
    const results = await Promise.all([1, 2, 3].map((n) => deployed(sluice, name, { key: 'manual', configured_props: { n } })));
    expect(results.map(({ outcome, source }) => `${outcome} ${source.name_slug}`).toSorted()).toEqual([
      `created ${name}`,
      `updated ${name}`,
      `updated ${name}`,
    ]);
    expect(sources).toEqual([...before, expect.objectContaining({ name, name_slug: name })]);
  });
});

it('deploys a registered component although a folder has the name of its key', async () => {
  const getRegisteredComponent = async () => ({ data: { configurable_props: [] } });
  // a folder in the root of the repository, where the tests run
  const choice = await chosenComponent({ getRegisteredComponent } as unknown as SluiceClient, 'packages');
  expect(choice.component).toEqual({ key: 'packages' });
});

it.each([
  ['packages/cli/build', 'did you mean packages/cli/build.mjs?'],
  ['htp-request', 'sluice list components lists these'],
])('says what it may be if it is not a file, a URL or a key: %s', async (target, remedy) => {
  const getRegisteredComponent = () => Promise.reject(new SluiceError(404, {}));
  await expect(chosenComponent({ getRegisteredComponent } as unknown as SluiceClient, target)).rejects.toMatchObject({
    ...{ code: 2, message: `${target} is not a file, a URL or the key of a registered component; ${remedy}` },
  });
});

it.each(['http://', 'https://['])('refuses %s, which is not a URL', async (target) => {
  await expect(chosenComponent({} as SluiceClient, target)).rejects.toMatchObject({ code: 2, message: `${target} is not a URL` });
});
