/**
 * The packages that components may import, part of the contract with their authors; the versions are pinned in package.json. `@pipedream/types`
 * is on the list too, the guest brings it along.
 */
export const curatedModules = [
  '@pipedream/platform',
  'async-retry',
  'axios',
  'cron-parser',
  'dayjs',
  'fast-xml-parser',
  'feedparser',
  'flatted',
  'form-data',
  'lodash',
  'lodash.get',
  'moment',
  'node-fetch',
  'object-hash',
  'rss-parser',
  'uuid',
];
