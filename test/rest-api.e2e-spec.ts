import { afterAll, beforeAll } from '@jest/globals';
import { components } from './rest/components.js';
import { events } from './rest/events.js';
import { history } from './rest/history.js';
import { keys } from './rest/keys.js';
import { pages } from './rest/pages.js';
import { replays } from './rest/replays.js';
import { requests } from './rest/requests.js';
import { runs } from './rest/runs.js';
import { sources } from './rest/sources.js';
import { stats } from './rest/stats.js';
import { subscriptions } from './rest/subscriptions.js';
import { idempotency, webhooks } from './rest/webhooks.js';
import { workflows } from './rest/workflows.js';
import { startWorld, type World } from './rest/world.js';
import { joinSystem } from './support/system.js';

let world: World;
beforeAll(async () => {
  world = await startWorld(await joinSystem());
});
afterAll(() => world?.close());
const shared = () => world;

components(shared);
sources(shared);
pages(shared);
requests(shared);
webhooks(shared);
subscriptions(shared);
idempotency(shared);
events(shared);
workflows(shared);
keys(shared);
runs(shared);
history(shared);
replays(shared);
stats(shared);
