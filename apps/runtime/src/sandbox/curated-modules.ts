/**
 * The packages that components may import, part of the contract with their authors. `component-packages/` pins their versions and has a separate
 * lock file, so that updating one cannot change a dependency of the services. `@pipedream/types` can be imported, too: the guest contains it.
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

  // Beyond the contract: small packages that many public components import. Clients of a single service are excluded: `googleapis` alone has
  // 236 MB, and similar ones bring about thirty packages each.
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
