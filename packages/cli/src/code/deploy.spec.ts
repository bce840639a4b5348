import { expect, it } from '@jest/globals';
import { SluiceError, type SluiceClient } from '@sluice/client';
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

it('deploys a registered component although a folder has the name of its key', async () => {
  const getRegisteredComponent = async () => ({ data: { configurable_props: [] } });
  // a folder in the root of the repository, where the tests run
  const choice = await chosenComponent({ getRegisteredComponent } as unknown as SluiceClient, 'packages');
  expect(choice.component).toEqual({ key: 'packages' });
});
