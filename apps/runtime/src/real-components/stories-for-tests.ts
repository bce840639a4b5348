import type { ApiRequest, ApiRoutes } from './mock-apis-for-tests.js';
import type { PlayedRequest } from './played-source-for-tests.js';

export interface Step {
  /** The trigger of the run; default: a tick of the timer. */
  request?: PlayedRequest | ((kept: Record<string, any>) => PlayedRequest);
  /** The summary of each event after dedupe, or its JSON if it has none. */
  emits: string[];
  /** The response that `respond` sent. */
  reply?: { status: number; body?: string };
}

export interface Story {
  source: string;
  props?: Record<string, unknown>;
  api?: ApiRoutes;
  /** The requests of the hooks. */
  activate?: string[];
  deactivate?: string[];
  steps: Step[];
  /** Entries of `db` after the last step; others are not checked. */
  keeps?: Record<string, unknown>;
}

const day = 24 * 3600 * 1000;
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();
const oauth = { $auth: { oauth_access_token: 'token', oauth_uid: '7' } };
/** Responds with the first value once, and then with the others. */
const turns = (...responses: unknown[]) => {
  let turn = 0;
  return () => responses[Math.min(turn++, responses.length - 1)];
};
const source = (app: string, folder: string, file = folder): string => `${app}/sources/${folder}/${file}.js`;

const http: Story[] = [
  {
    source: source('http', 'new-requests'),
    props: { resStatusCode: '201', resBody: '{"got":"it"}' },
    steps: [
      {
        request: { method: 'PUT', path: '/a/b', search: 'x=1', body: { n: 1 } },
        emits: ['PUT /a/b'],
        reply: { status: 201, body: '{"got":"it"}' },
      },
    ],
  },
  {
    source: source('http', 'new-requests-payload-only'),
    steps: [{ request: { body: { n: 1 } }, emits: ['{"body":{"n":1}}'], reply: { status: 200, body: '{"n":1}' } }],
  },
];

const invitee = (event: string): Story => ({
  source: source('calendly', `invitee-${event}`),
  props: { calendly: { $auth: { api_key: 'key' } } },
  api: {
    'POST calendly.com/api/v1/hooks': ({ headers, body }: ApiRequest) =>
      headers['x-token'] === 'key' && body.events[0] === `invitee.${event}` ? { id: 77 } : undefined,
    'DELETE calendly.com/api/v1/hooks/77': {},
  },
  activate: ['POST calendly.com/api/v1/hooks'],
  deactivate: ['DELETE calendly.com/api/v1/hooks/77'],
  steps: [
    { request: { body: {} }, emits: [], reply: { status: 404 } },
    ...['Interview', null].map((summary) => ({
      request: {
        headers: { 'x-calendly-hook-id': '77' },
        body: { payload: { event: { uuid: 'u1' }, event_type: { name: 'Interview' } } },
      },
      // the second time the same: dedupe "unique"
      emits: summary === null ? [] : [summary],
      reply: { status: 200 },
    })),
  ],
  keeps: { hookId: 77 },
});
const calendly: Story[] = [
  invitee('created'),
  invitee('canceled'),
  ...[
    ['new-event', 'events'],
    ['new-event-type', 'event_types'],
  ].map(([folder, path]) => ({
    source: source('calendly', folder!),
    props: { calendly: { $auth: { api_key: 'key' } } },
    api: {
      [`GET calendly.com/api/v1/users/me/${path}`]: {
        data: [
          { id: 'old', attributes: { created_at: ago(90 * day), start_time: ago(90 * day), name: 'old' } },
          { id: 'new', attributes: { created_at: ago(day), start_time: '2026-01-01T10:00:00Z', name: 'new' } },
        ],
      },
    },
    steps: [{ emits: [beginning(folder === 'new-event' ? 'New Event at ' : 'new')] }, { emits: [] }],
  })),
];

/** A text with this beginning, because the machine's locale determines how dates are printed. */
function beginning(text: string): string {
  return `${text}…`;
}

const feed = (...titles: string[]): string =>
  `<?xml version="1.0"?><rss version="2.0"><channel><title>t</title><link>https://t.test</link>${titles
    .map((title) => `<item><guid>${title}</guid><title>${title}</title><pubDate>Thu, 01 Jan 2026 00:00:00 GMT</pubDate></item>`)
    .join('')}</channel></rss>`;
const feeds: Story[] = [
  ...[
    ['new-stories-by-keyword', 'newest'],
    ['new-comments-by-keyword', 'newcomments'],
  ].map(([folder, path]) => ({
    source: source('hacker_news', folder!),
    props: { keyword: 'sluice gate' },
    api: {
      [`GET hnrss.org/${path}`]: turns(feed('b', 'a'), feed('c', 'b')),
    },
    steps: [{ emits: ['a', 'b'] }, { emits: ['c'] }],
    keeps: { seenKeys: ['c', 'b', 'a'] },
  })),
  {
    source: source('rss', 'new-item-in-feed'),
    props: { url: 'https://feeds.test/all.xml' },
    api: { 'GET feeds.test/all.xml': turns(feed('b', 'a'), feed('c', 'b')) },
    steps: [{ emits: ['b', 'a'] }, { emits: ['c'] }],
  },
];

const article = (id: number) => ({ id, title: `story ${id}`, published_timestamp: ago(day - id * 1000) });
const polled: Story[] = [
  ...['fresh-stories', 'fresh-stories-by-tag'].map((folder) => ({
    source: source('dev_to', folder),
    props: { dev_to: { $auth: { api_key: 'key' } }, tag: 'node' },
    api: {
      'GET dev.to/api/articles': turns([article(2), article(1)], [article(3), article(2)]),
    },
    // dedupe "greatest"
    steps: [{ emits: ['story 1', 'story 2'] }, { emits: ['story 3'] }],
  })),
  {
    source: source('npm', 'download-counts'),
    props: { package: 'pg' },
    api: { 'GET api.npmjs.org/downloads/point/last-day/pg': { downloads: 12 } },
    steps: [{ emits: ['12'] }, { emits: ['12'] }],
  },
  {
    source: source('gorgias', 'new-events'),
    props: { gorgias: { $auth: { domain: 'shop', email: 'e', api_key: 'k' } } },
    api: {
      'GET shop.gorgias.com/api/events/': ({ headers }: ApiRequest) =>
        headers.authorization === `Basic ${Buffer.from('e:k').toString('base64')}`
          ? { data: [{ id: 5, type: 'ticket-created', created_datetime: ago(day) }] }
          : undefined,
    },
    steps: [{ emits: ['ticket-created'] }, { emits: [] }],
  },
  {
    source: source('airtable', 'new-records'),
    props: { airtable: { $auth: { api_key: 'key' } }, baseId: 'base', tableId: 'table' },
    api: {
      'GET api.airtable.com/v0/base/table': ({ query }: ApiRequest) => ({
        records: query.has('filterByFormula') ? [] : [{ id: 'r1', createdTime: '2026-01-01T00:00:00.000Z', fields: { a: 1 } }],
      }),
    },
    steps: [{ emits: ['{"a":1}'] }, { emits: [] }],
    keeps: { lastMaxTimestamp: '2026-01-01T00:00:00.000Z' },
  },
  {
    source: source('spotify', 'new-playlist'),
    props: { spotify: oauth },
    api: {
      // two pages
      'GET api.spotify.com/v1/me/playlists': ({ query }: ApiRequest) => ({
        total: 21,
        items: Array.from({ length: query.get('offset') === '0' ? 20 : 1 }, (_, n) => {
          const id = Number(query.get('offset')) + n;
          return { id: `p${id}`, name: `list ${id}` };
        }),
      }),
    },
    steps: [{ emits: Array.from({ length: 21 }, (_, n) => `list ${n}`) }, { emits: [] }],
  },
  {
    source: source('spotify', 'new-saved-track', 'new-saved-tracks'),
    props: { spotify: oauth },
    api: {
      'GET api.spotify.com/v1/me/tracks': {
        total: 2,
        items: [
          { added_at: ago(day), track: { id: 'a', name: 'new one' } },
          { added_at: ago(90 * day), track: { id: 'b', name: 'old one' } },
        ],
      },
    },
    steps: [{ emits: ['new one'] }, { emits: [] }],
  },
  {
    source: source('pagerduty', 'new-oncall-rotation'),
    props: { pagerduty: oauth },
    api: {
      'GET api.pagerduty.com/escalation_policies': { escalation_policies: [{ id: 'P1' }] },
      'GET api.pagerduty.com/oncalls': turns(
        { oncalls: [{ user: { id: 'u1', summary: 'Ann' } }] },
        { oncalls: [{ user: { id: 'u1', summary: 'Ann' } }, { user: { id: 'u2', summary: 'Bob' } }] },
      ),
      'GET api.pagerduty.com/escalation_policies/P1': { escalation_policy: { name: 'first' } },
    },
    steps: [{ emits: ['Ann is now on-call for escalation policy first'] }, { emits: ['Bob is now on-call for escalation policy first'] }],
  },
  {
    source: source('stack_exchange', 'new-question-for-keywords'),
    props: { siteId: 'stackoverflow', keywords: ['node', 'kafka'] },
    api: {
      'GET api.stackexchange.com/2.2/search/advanced': ({ query }: ApiRequest) => ({
        items: query.get('q') === 'node,kafka' ? [{ question_id: 1, creation_date: 1700000000, title: 'How?' }] : [],
        has_more: false,
      }),
    },
    activate: [],
    steps: [{ emits: ['New question: How?'] }, { emits: [] }],
  },
  {
    source: source('formstack', 'new-form'),
    props: { formstack: oauth },
    api: {
      'GET www.formstack.com/api/v2/form.json': turns(
        { forms: [{ id: 1, name: 'one' }] },
        {
          forms: [
            { id: 1, name: 'one' },
            { id: 2, name: 'two' },
          ],
        },
      ),
    },
    steps: [{ emits: ['one'] }, { emits: ['two'] }],
    keeps: { largestPreviousFormId: 2 },
  },
  {
    source: source('ghost', 'new-author'),
    props: { ghost: { $auth: { admin_domain: 'https://blog.test', content_api_key: 'k' } } },
    api: {
      'GET blog.test/ghost/api/v3/content/authors': ({ query }: ApiRequest) => ({
        meta: { pagination: { pages: 2 } },
        authors: [{ id: query.get('page'), name: `author ${query.get('page')}` }],
      }),
    },
    steps: [{ emits: ['author 1', 'author 2'] }, { emits: [] }],
  },
  {
    // assigns to a variable that it does not declare
    source: source('intercom', 'new-lead'),
    props: { intercom: oauth },
    api: {
      'POST api.intercom.io/contacts/search': { data: [{ id: 'l1', name: 'Ann', created_at: Math.floor(Date.now() / 1000) }], pages: {} },
    },
    steps: [{ emits: ['Ann'] }, { emits: [] }],
  },
  {
    // dedupe "last"
    source: source('github', 'new-commit'),
    props: { github: oauth, repoFullName: 'o/r' },
    api: {
      'GET api.github.com/repos/o/r/commits': turns(commits('b', 'a'), commits('d', 'c', 'b')),
    },
    steps: [{ emits: ['a', 'b'] }, { emits: ['c', 'd'] }],
  },
];

function commits(...shas: string[]): object[] {
  return shas.map((sha) => ({ sha, commit: { message: sha, author: { date: '2026-01-01T00:00:00Z' } } }));
}

const sender = { login: 'ann' };
const hub = (folder: string, body: object, summary: string, other?: object): Story => ({
  source: source('github', folder, folder === 'new-push' ? 'push-event' : folder),
  props: { github: oauth, repoFullName: 'o/r', events: ['push'] },
  api: {
    'POST api.github.com/repos/o/r/hooks': ({ headers, body }: ApiRequest) =>
      headers.authorization === 'token token' && body.config.url === 'https://endpoint.test/abcdefgh' ? { id: 9 } : undefined,
    'DELETE api.github.com/repos/o/r/hooks/9': {},
  },
  activate: ['POST api.github.com/repos/o/r/hooks'],
  deactivate: ['DELETE api.github.com/repos/o/r/hooks/9'],
  steps: [
    { request: { body: { zen: 'Keep it logically awesome.' } }, emits: [] },
    { request: { body }, emits: [summary] },
    ...(other ? [{ request: { body: other }, emits: [] }] : []),
  ],
  keeps: { hookId: 9 },
});
const github: Story[] = [
  hub('new-star', { action: 'created', sender, starred_at: '2026-01-01T00:00:00Z' }, 'ann starred o/r', { action: 'deleted', sender }),
  hub('new-push', { ref: 'main' }, '{"ref":"main"}'),
  hub('custom-webhook-events', { action: 'x' }, '{"action":"x"}'),
  hub('new-branch', { ref: 'b', ref_type: 'branch', sender }, 'New Branch: b by ann', { ref: 'v1', ref_type: 'tag', sender }),
  hub('new-issue', { action: 'opened', issue: { number: 3, title: 'Oh' }, sender }, '#3 Oh opened by ann', { action: 'closed' }),
  hub('new-label', { action: 'created', repository: { name: 'r' }, sender }, 'r created by ann', { action: 'edited' }),
  hub('new-milestone', { action: 'created', milestone: { title: 'v2' }, sender }, 'v2 created by ann', { action: 'closed' }),
];

const chat = (folder: string, body: object, summary: string): Story => ({
  source: source('telegram', folder),
  props: { telegram: { $auth: { token: 'T' } } },
  api: {
    'POST api.telegram.org/botT/setWebhook': ({ body }: ApiRequest) =>
      body.url === 'https://endpoint.test/abcdefgh/T' ? { ok: true } : undefined,
    'GET api.telegram.org/botT/deleteWebhook': { ok: true },
  },
  activate: ['POST api.telegram.org/botT/setWebhook'],
  deactivate: ['GET api.telegram.org/botT/deleteWebhook'],
  steps: [
    { request: { path: '/wrong', body }, emits: [] },
    { request: { path: '/T', body }, emits: [summary], reply: { status: 200 } },
    { request: { path: '/T', body }, emits: [], reply: { status: 200 } },
  ],
});
const telegram: Story[] = [
  chat('new-updates', { update_id: 1, message: { from: { first_name: 'A', last_name: 'B' } } }, 'Update from A B'),
  chat('message-updates', { update_id: 1, message: { text: 'hello' } }, 'hello'),
  chat('channel-updates', { update_id: 1, channel_post: { chat: { title: 'news' }, text: 'hello' } }, 'news - hello'),
];

const blog = (folder: string, body: object, summary: string): Story => ({
  source: source('ghost_admin', folder),
  props: { ghost: { $auth: { admin_api_url: 'https://blog.test/', admin_api_key: `id:${'ab'.repeat(16)}` } } },
  api: {
    // a token that jsonwebtoken has signed
    'POST blog.test/ghost/api/v3/admin/webhooks': ({ headers }: ApiRequest) =>
      /^Ghost [\w-]+\.[\w-]+\.[\w-]+$/.test(headers.authorization as string) ? { webhooks: [{ id: 'w1' }] } : undefined,
    'DELETE blog.test/ghost/api/v3/admin/webhooks/w1': {},
  },
  activate: ['POST blog.test/ghost/api/v3/admin/webhooks'],
  deactivate: ['DELETE blog.test/ghost/api/v3/admin/webhooks/w1'],
  steps: [{ request: { body }, emits: [summary] }],
  keeps: { hookId: 'w1' },
});
const ghost: Story[] = [
  blog('member-created', { member: { current: { id: 1, name: 'Ann' } } }, 'Ann'),
  blog('member-deleted', { member: { previous: { id: 1, name: 'Ann' } } }, 'Ann'),
  blog('new-tag', { tag: { current: { id: 1, name: 'news' } } }, 'news'),
  blog('page-published', { page: { current: { id: 1, title: 'About' } } }, 'About'),
];

const issue = {
  user: { name: 'Ann', username: 'ann' },
  object_attributes: { id: 1, iid: 2, created_at: '2026-01-01T00:00:00Z', title: 'Oh' },
};
const others: Story[] = [
  {
    source: source('gitlab', 'new-issue'),
    props: { gitlab: oauth, projectId: 5 },
    api: { 'POST gitlab.com/api/v4/projects/5/hooks': { id: 3 }, 'DELETE gitlab.com/api/v4/projects/5/hooks/3': {} },
    activate: ['POST gitlab.com/api/v4/projects/5/hooks'],
    deactivate: ['DELETE gitlab.com/api/v4/projects/5/hooks/3'],
    steps: [
      { request: { body: issue }, emits: [], reply: { status: 404 } },
      {
        request: ({ token }) => ({ headers: { 'x-gitlab-token': token }, body: { ...issue, changes: { updated_at: {} } } }),
        emits: ['New issue by Ann (ann): #2 Oh'],
        reply: { status: 200 },
      },
    ],
    keeps: { hookId: 3 },
  },
  {
    source: source('gitlab', 'new-project'),
    props: { gitlab: oauth },
    api: {
      'GET gitlab.com/api/v4/users/7/projects': turns(
        [{ id: 1, name: 'one' }],
        [
          { id: 2, name: 'two', created_at: '2026-01-01T00:00:00Z' },
          { id: 1, name: 'one' },
        ],
      ),
    },
    activate: ['GET gitlab.com/api/v4/users/7/projects'],
    steps: [{ emits: ['New project: two'] }],
    keeps: { lastProcessedProjectId: 2 },
  },
  {
    source: source('typeform', 'new-submission'),
    props: { typeform: oauth, formId: 'f1' },
    steps: [{ request: { body: { event_id: 'e1' } }, emits: ['{"event_id":"e1"}'] }],
  },
  {
    // lodash.get, lodash.truncate, he, moment
    source: source('yotpo', 'new-reviews'),
    props: { yotpo: { $auth: { app_key: 'A', oauth_access_token: 'token' } } },
    api: {
      'GET developers.yotpo.com/v2/A/webhooks': { webhooks: { webhooks: [] } },
      'POST developers.yotpo.com/v2/A/webhooks': {},
    },
    activate: [
      'GET developers.yotpo.com/v2/A/webhooks',
      'POST developers.yotpo.com/v2/A/webhooks',
      'GET developers.yotpo.com/v2/A/webhooks',
      'POST developers.yotpo.com/v2/A/webhooks',
    ],
    steps: [
      {
        request: { body: { data: { id: 1, updated_at: '2026-01-01', score: 5, new: true, title: 'Fish &amp; chips' } } },
        emits: ['5 stars: Fish & chips'],
      },
      { request: { body: { data: { id: 1, updated_at: '2026-01-01', score: 5 } } }, emits: [] },
    ],
  },
];

/** Real components, the responses of their APIs, and the expected events. */
export const stories: Story[] = [...http, ...calendly, ...feeds, ...polled, ...github, ...telegram, ...ghost, ...others];
