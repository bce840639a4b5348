import { createHmac, createHash, generateKeyPairSync, sign } from 'node:crypto';
import { URLSearchParams } from 'node:url';

// What the sources need to find something to emit: credentials and props, the responses of their APIs, and the requests that reach their endpoints.

/** @typedef {import('./mock-server.mjs').Call} Call */

const day = 24 * 3600 * 1000;
const now = new Date();
const iso = now.toISOString();
const hourAgo = new Date(now.getTime() - day / 24).toISOString();
const unix = Math.floor(now.getTime() / 1000);
const ms = now.getTime();

/** Credentials of all kinds: each app takes those that it knows. */
export const credentials = {
  oauth_access_token: 'token',
  oauth_refresh_token: 'secret',
  oauth_uid: '7',
  oauth_signer_uri: 'https://signer.test/sign',
  api_key: 'key',
  apikey: 'key',
  api_secret_key: 'secret',
  access_token: 'token',
  access_token_secret: 'secret',
  auth_token: 'token',
  token: 'T',
  bot_token: 'token',
  secret: 'secret',
  app_key: 'A',
  domain: 'shop',
  shop_id: 'shop',
  account: 'account',
  email: 'ann@example.com',
  admin_domain: 'https://blog.test',
  content_api_key: 'key',
  admin_api_url: 'https://blog.test/',
  admin_api_key: `id:${'ab'.repeat(16)}`,
  AccountSid: `AC${'a'.repeat(32)}`,
  Sid: `AC${'a'.repeat(32)}`,
  Secret: 'secret',
  accessKeyId: 'key',
  secretAccessKey: 'secret',
  instance_url: 'https://salesforce.test',
  key_json: '{}',
};

/** Values of props, by `app.prop` or by `prop`; others get a value of their type. */
export const propValues = {
  'airtable.viewId': 'view',
  'bitbucket.branchName': 'main',
  'bitbucket.eventTypes': ['repo:push', 'SUCCESSFUL'],
  'github.repoFullName': 'o/r',
  'gitlab.username': 'ann',
  'hubspot.lists': ['{"label":"list","value":1}'],
  'hubspot.stages': ['{"label":"stage","value":"won"}'],
  'hubspot.objectIds': ['{"label":"object","value":1}'],
  'hubspot.forms': ['{"label":"form","value":"f1"}'],
  'hubspot.objectType': 'contact',
  'netlify.siteId': 'site',
  'rss.url': 'https://feeds.test/all.xml',
  'rss.rss': undefined,
  'http.resBody': '{}',
  'npm.package': 'pg',
  'shopify.eventTypes': ['{"filter":"Order","verb":"placed"}'],
  'shopify.blogIds': ['1'],
  'stripe.enabledEvents': ['*'],
  'asana.taskIds': ['101'],
  'aws.region': 'us-east-1',
  'salesforce.objectType': 'Account',
  'sendgrid.eventTypes': ['open'],
  'trello.boardId': 'b1',
  'trello.timeBefore': 1,
  'trello.timeBeforeUnit': 60_000,
  'twilio.incomingPhoneNumber': `PN${'a'.repeat(32)}`,
  'twilio.authToken': 'secret',
  'webflow.collectionIds': ['x'],
};

const named = {
  id: 101,
  name: 'one',
  username: 'ann',
  display_name: 'Ann',
  uuid: '{h1}',
  login: 'ann',
  summary: 'Ann',
  email: 'ann@example.com',
};
const tag = { id: 9, name: 'tag', applied_at: unix };

/** An item that has the members of the items of many APIs. */
export const item = () => ({
  ...named,
  ...{
    gid: '101',
    _id: '101',
    id_str: '101',
    hash: 'a1',
    sha: 'a1',
    short_id: 'a1',
    vid: 101,
    slug: 'one',
    iid: 2,
    question_id: 1,
    answer_id: 2,
  },
  ...{
    title: 'one',
    full_name: 'o/one',
    screen_name: 'ann',
    body: 'one @ann',
    text: 'one',
    content: 'one',
    full_text: 'one',
    message: 'one @ann',
  },
  ...{ type: 'one', eventType: 'one', event_name: 'one', recipient: 'ann@example.com', completed: false, is_organization: true, ref: 'b' },
  ...{
    created_at: iso,
    createdAt: iso,
    created: ms,
    createdTime: iso,
    created_datetime: iso,
    creation_date: unix,
    published_timestamp: iso,
  },
  ...{
    updated_at: iso,
    updatedAt: iso,
    committed_date: iso,
    date: iso,
    added_at: iso,
    submittedAt: ms,
    timestamp: unix,
    feedCreation: iso,
  },
  ...{
    starred_at: iso,
    Id: '101',
    Name: 'one',
    CreatedDate: new Date(ms - 1000).toISOString(),
    LastModifiedDate: iso,
    idBoard: 'b1',
    idList: 'l1',
    due: iso,
    downloads: 12,
    clientSecret: 'secret',
    query: 'one',
  },
  attributes: { created_at: iso, start_time: iso, name: 'one' },
  properties: { firstname: { value: 'Ann' }, lastname: { value: 'Bee' }, dealname: 'one', dealstage: 'won', name: 'one' },
  fields: { a: 1 },
  user: named,
  owner: named,
  author: named,
  commit: { message: 'one', author: { date: iso } },
  engagement: { id: 101, createdAt: ms, type: 'NOTE' },
  track: { id: 'a', name: 'one' },
  snippet: { title: 'one', publishedAt: iso },
  source: { body: 'one' },
  data: { card: named },
  fulfillments: [{ id: 1, name: 'one' }],
  conversation_parts: { total_count: 1, conversation_parts: [{ id: 5, body: 'one' }] },
  statistics: { last_close_at: unix, last_admin_reply_at: unix, last_contact_reply_at: unix },
  tags: { tags: [tag], data: [tag] },
  trends: [{ name: 'one', query: 'one' }],
});

const listNames =
  'data items results values records events forms authors contacts lists conversations statuses checkouts articles customers orders pages products';

/** An item that is also a list of one item, under many names. */
export const anything = (changes = {}) => {
  const one = { ...item(), ...changes };
  return {
    ...one,
    ...Object.fromEntries(listNames.split(' ').map((name) => [name, [one]])),
    ...{ total: 1, total_count: 1, has_more: false, hasMore: false, 'has-more': false, pageInfo: { totalResults: 1 } },
    ...{ meta: { pagination: { pages: 1 } }, contact_count: 1, result: [one] },
  };
};

const feed = `<?xml version="1.0"?><rss version="2.0"><channel><title>t</title><link>https://t.test</link><item><guid>a</guid><title>a</title><pubDate>Thu, 01 Jan 2026 00:00:00 GMT</pubDate></item></channel></rss>`;
const notification = {
  updated_at: iso,
  subject: { title: 'one', url: 'https://api.github.com/pulls/1', latest_comment_url: 'https://api.github.com/comments/1' },
};
/** @param {string} id @param {string} status */
const meeting = (id, status) => {
  const soon = { dateTime: new Date(Date.now() + 100_000).toISOString() };
  return { ...item(), id, status, created: iso, updated: iso, start: soon, end: soon };
};
/** @param {object} changes */
const intercom = (changes = {}) => ({ ...anything({ created_at: unix, updated_at: unix }), pages: {}, ...changes });
const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/**
 * The responses of APIs, by `GET api.example.com/things`; others get `anything`. A function gets the request, and how many like it there were.
 * @type {[string | RegExp, unknown][]}
 */
export const routes = [
  [/^POST signer\.test/, JSON.stringify('OAuth signed')],
  [/^POST calendly\.com\/api\/v1\/hooks$/, { id: 77 }],
  [/^GET dev\.to\/api\/articles/, [item()]],
  [/^GET (?:hnrss\.org|feeds\.test)\//, feed],
  ['GET api.pagerduty.com/escalation_policies', { escalation_policies: [named] }],
  ['GET api.pagerduty.com/oncalls', { oncalls: [{ user: named }] }],
  ['GET api.pagerduty.com/escalation_policies/101', { escalation_policy: named }],
  ['GET api.github.com/notifications', ['mention', 'review_requested', 'security_alert'].map((reason) => ({ ...notification, reason }))],
  [/^GET api\.github\.com\/(?:user\/repos|repos\/o\/r\/\w+)$/, [item()]],
  // what is there when the source is activated is not new
  [
    /^GET gitlab\.com\/api\/v4\/(?:users|projects)\/\w+\/(?:projects|milestones)$/,
    (/** @type {Call} */ _, /** @type {number} */ nth) => (nth === 1 ? [{ ...item(), id: 1 }] : [item(), { ...item(), id: 1 }]),
  ],
  [/^GET gitlab\.com\/.+\/commits$/, [item()]],
  [/^GET salesforce\.test\/.+\/describe$/, { fields: [{ name: 'Name', nameField: true }] }],
  [/^GET salesforce\.test\/.+\/updated$/, { ids: ['101'], latestDateCovered: hourAgo }],
  [/^GET salesforce\.test\/.+\/deleted$/, { deletedRecords: [{ id: '101', deletedDate: iso }], latestDateCovered: hourAgo }],
  [/^GET blog\.test\/.+\/(?:authors)$/, anything()],
  [/^POST blog\.test\/.+\/webhooks$/, { webhooks: [{ id: 'w1' }] }],
  [/^GET api\.trello\.com\/1\/(?:boards\/[^/]+\/cards|members\/me\/notifications)$/, [item()]],
  ['GET api.hubapi.com/calendar/v1/events/task', [item()]],
  ['POST api.hubapi.com/crm/v3/objects/contacts/search', anything({ properties: { firstname: 'Ann', lastname: 'Bee' } })],
  [/^GET app\.asana\.com\/api\/1\.0\/(?:workspaces|organizations\/\w+\/teams)$/, { data: [item()] }],
  [/^(?:GET|POST) app\.asana\.com\//, { data: item() }],
  [/^(?:GET|POST) api\.intercom\.io\//, () => intercom()],
  [/^GET discordapp\.com\/.+\/messages$/, [{ ...item(), id: '101' }]],
  [/^GET developers\.yotpo\.com\/v2\/A\/webhooks$/, { webhooks: { webhooks: [] } }],
  [
    'PATCH api.sendgrid.com/v3/user/webhooks/event/settings/signed',
    { public_key: keys.publicKey.export({ type: 'spki', format: 'der' }).toString('base64') },
  ],
  [
    'POST rt.pipedream.com/sql',
    {
      queryExecutionId: 'q1',
      resultsFilename: 'r.csv',
      resultSet: { ResultSetMetadata: { ColumnInfo: [] }, Rows: [{ Data: [{ VarCharValue: '1' }] }] },
    },
  ],
  [
    /^GET api\.twitter\.com\/.+\/followers\/ids\.json$/,
    (/** @type {Call} */ _, /** @type {number} */ nth) => ({ ids: nth === 1 ? ['1', '2'] : ['1'], next_cursor: 0, previous_cursor: 0 }),
  ],
  [/^GET api\.twitter\.com\/.+\/(?:list|lookup|user_timeline|place)\.json$/, [item()]],
  [/^GET api\.twitter\.com\/labs\//, { data: [{ tweet_id: '1', tweet: { views: 1 } }] }],
  ['GET www.googleapis.com/drive/v3/changes/startPageToken', { startPageToken: '1' }],
  [
    'GET www.googleapis.com/calendar/v3/users/me/calendarList',
    (/** @type {Call} */ _, /** @type {number} */ nth) => ({ items: nth === 1 ? [] : [item()] }),
  ],
  [
    /^GET www\.googleapis\.com\/calendar\/v3\/calendars\/.+\/events$/,
    () => ({ items: [meeting('e1', 'confirmed'), meeting('e2', 'cancelled')], nextSyncToken: 'token' }),
  ],
  ['GET www.googleapis.com/youtube/v3/search', anything({ id: { videoId: 'v1' } })],
  [/^(?:POST|DELETE) api\.stripe\.com\//, { id: 'we_1', object: 'webhook_endpoint', secret: 'secret', deleted: true }],
  [/^DELETE api\.webflow\.com\//, { deleted: 1 }],
  ['POST logs.us-east-1.amazonaws.com/', { queryId: 'q1', status: 'Complete', results: [[{ field: 'a', value: '1' }]] }],
  [
    /^POST [\w.-]+\.amazonaws\.com\//,
    '<CreateTopicResponse><CreateTopicResult><TopicArn>arn:aws:sns:us-east-1:1:t</TopicArn></CreateTopicResult></CreateTopicResponse>',
  ],
];

/**
 * @typedef {object} Trigger a request to the endpoint of a source
 * @property {string} [path]
 * @property {Record<string, string>} [headers]
 * @property {unknown} [body] a text, or what is sent as JSON
 */

/** @type {Record<string, { type?: string, translationKey?: string }>} */
const trelloActions = {
  'card-archived': { translationKey: 'action_archived_card' },
  'card-moved': { translationKey: 'action_move_card_from_list_to_list' },
  'card-updates': { type: 'updateCard' },
  'new-board': { type: 'createBoard' },
  'new-card': { type: 'createCard' },
  'new-checklist': { type: 'addChecklistToCard' },
  'new-comment-added-to-card': { type: 'commentCard' },
  'new-labels-added-to-card': { type: 'addLabelToCard' },
  'new-label': { type: 'createLabel' },
  'new-list': { type: 'createList' },
  'new-member-on-card': { type: 'addMemberToCard' },
};
const change = (/** @type {string} */ type) => ({
  created: true,
  new: { type, name: 'main' },
  commits: [{}],
  old: { target: { hash: 'a0' } },
});
const encoded = (/** @type {object} */ value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const json = (/** @type {object} */ value) => ({ body: JSON.stringify(value), headers: { 'content-type': 'application/json' } });

/**
 * The requests of the apps' services, by app. They get the name of the source's file, the requests of its hooks, and its endpoint.
 * @type {Record<string, (source: string, calls: Call[], endpoint: string) => Trigger>}
 */
export const triggers = {
  asana: () => ({
    headers: { 'x-hook-secret': 'secret' },
    body: { events: [{ resource: { gid: '101' }, parent: { gid: '101', resource_type: 'task' }, user: { gid: '101' }, change: {} }] },
  }),
  aws: () => ({ headers: { 'x-amz-sns-message-id': 'm1' }, body: { Message: '{"a":1}', Timestamp: iso } }),
  bitbucket: () => ({
    headers: { 'x-event-time': iso, 'x-request-uuid': 'r1', 'x-event-key': 'repo:push', 'x-hook-uuid': 'h1' },
    body: {
      ...{
        push: { changes: [change('branch'), change('tag')] },
        repository: { full_name: 'o/r', name: 'r' },
        issue: item(),
        comment: item(),
        commit: item(),
      },
      ...{ pullrequest: { ...item(), reviewers: [named] }, commit_status: { state: 'SUCCESSFUL', repository: { name: 'r' } } },
    },
  }),
  calendly: () => ({
    headers: { 'x-calendly-hook-id': '77' },
    body: { payload: { event: { uuid: 'u1' }, event_type: { name: 'Interview' } } },
  }),
  formstack: () => ({ body: { HandshakeKey: 'secret', UniqueID: 'u1' } }),
  ghost_admin: () => {
    const changed = { current: item(), previous: item() };
    return { body: { member: changed, tag: changed, page: changed, post: changed } };
  },
  github: (source) => ({
    body: {
      ...{ action: /issue|pull-request/.test(source) ? 'opened' : 'created', ref: 'b', ref_type: 'branch', sender: named, starred_at: iso },
      ...{ issue: { number: 3, title: 'Oh' }, repository: named, milestone: item(), comment: item(), project_card: item() },
    },
  }),
  gitlab: (_, calls) => ({
    headers: { 'x-gitlab-token': calls.find(({ to }) => to.startsWith('POST'))?.body.token ?? '' },
    body: {
      ...{ before: '0'.repeat(40), ref: 'b', total_commits_count: 1, user: named, assignees: [named], changes: { updated_at: {} } },
      object_attributes: { ...item(), title: 'Oh @ann', action: 'open', noteable_type: 'Commit' },
    },
  }),
  jotform: () => ({ body: { rawRequest: '{"a":1}', submissionID: '1' } }),
  netlify: (_, calls) => {
    const raw = json(item());
    const content = `${encoded({ typ: 'JWT', alg: 'HS256' })}.${encoded({ sha256: createHash('sha256').update(raw.body).digest('hex') })}`;
    const token = calls.find(({ to }) => to.startsWith('POST'))?.body.data?.signature_secret ?? '';
    return {
      ...raw,
      headers: { ...raw.headers, 'x-webhook-signature': `${content}.${createHmac('sha256', token).update(content).digest('base64url')}` },
    };
  },
  pipedream: () => ({ path: '/schedule', body: { timestamp: new Date(Date.now() + 1000).toISOString(), message: 'one' } }),
  sendgrid: () => {
    const raw = json([{ event: 'open', sg_event_id: 'e1', timestamp: unix }]);
    const signature = sign('sha256', Buffer.from(`${unix}${raw.body}`), keys.privateKey).toString('base64');
    return {
      ...raw,
      headers: {
        ...raw.headers,
        'x-twilio-email-event-webhook-signature': signature,
        'x-twilio-email-event-webhook-timestamp': String(unix),
      },
    };
  },
  sentry: () => {
    const raw = json({ action: 'created', data: { issue: { id: 1 } } });
    const signature = createHmac('sha256', 'secret').update(raw.body).digest('hex');
    return {
      ...raw,
      headers: {
        ...raw.headers,
        'sentry-hook-signature': signature,
        'sentry-hook-resource': 'issue',
        'sentry-hook-timestamp': String(unix),
        'request-id': 'r1',
      },
    };
  },
  stripe: () => {
    const raw = json({ id: 'evt_1', object: 'event', type: 'charge.succeeded', data: {} });
    // the client accepts signatures of the last minutes
    const seconds = Math.floor(Date.now() / 1000);
    const signature = createHmac('sha256', 'secret').update(`${seconds}.${raw.body}`).digest('hex');
    return { ...raw, headers: { ...raw.headers, 'stripe-signature': `t=${seconds},v1=${signature}` } };
  },
  supersaas: () => ({ body: { event: 'new', created_on: iso, email: 'ann@example.com' } }),
  telegram: () => ({
    path: '/T',
    body: {
      update_id: 1,
      message: { text: 'hello', from: { first_name: 'A', last_name: 'B' } },
      channel_post: { chat: { title: 'news' }, text: 'hello' },
    },
  }),
  trello: (source) => {
    const { type = 'other', translationKey } = trelloActions[source] ?? {};
    const data = {
      card: named,
      board: named,
      list: named,
      label: { ...named, color: 'red' },
      checklist: named,
      listBefore: named,
      listAfter: named,
      text: 'one',
    };
    return { body: { action: { type, display: { translationKey }, data } } };
  },
  twilio: (_, __, endpoint) => {
    const fields = { Body: 'hello', From: '+15550100' };
    const signed = `${endpoint}/${Object.entries(fields).sort().flat().join('')}`;
    return {
      body: new URLSearchParams(fields).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'x-twilio-signature': createHmac('sha1', 'secret').update(signed).digest('base64'),
        'i-twilio-idempotency-token': 't1',
      },
    };
  },
  typeform: () => ({ body: { event_id: 'e1' } }),
  webflow: () => ({
    body: {
      ...{ _id: '101', _cid: 'x', itemId: '101', orderId: 'o1', slug: 'one', site: 's1', publishTime: ms },
      ...{ 'updated-on': iso, 'created-on': iso, acceptedOn: iso, d: iso },
    },
  }),
  yotpo: () => ({
    body: { data: { id: 1, updated_at: new Date(ms - day).toISOString(), score: 5, new: true, title: 'Fish &amp; chips' } },
  }),
};

/** The hosts that no file of a package names literally. */
export const otherHosts = [
  ...[
    'signer.test',
    'blog.test',
    'feeds.test',
    'salesforce.test',
    'shop.gorgias.com',
    'shop.myshopify.com',
    'api.webflow.com',
    'api.netlify.com',
  ],
  ...['api.stripe.com', 'api.twilio.com', 'api.twitter.com', 'hnrss.org', 'iam.amazonaws.com'],
  ...['sns', 'logs', 'email'].map((service) => `${service}.us-east-1.amazonaws.com`),
];
