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

  // Beyond the contract: what many public components import, as long as it is small. Clients of one service are not here: `googleapis` alone
  // is 236 MB, and its likes bring some thirty packages each.
  '@octokit/webhooks-definitions',
  '@sendgrid/eventwebhook',
  'bottleneck',
  'convert-array-to-csv',
  'he',
  'jsonwebtoken',
  'lodash.differenceby',
  'lodash.maxby',
  'lodash.truncate',
  'parse-link-header',
  'slugify',
  'uuidv4',
];
