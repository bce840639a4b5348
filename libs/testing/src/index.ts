export { cpuSeconds } from './cpu-seconds.js';
export { FakeMessages } from './fake-messages.js';
export { type FreshDatabase, freshDatabase, schemaDifferences, untilLocked } from './fresh-database.js';
export { pagesRead } from './pages-read.js';
export { type Random, seededRandom } from './seeded-random.js';
export { makeTestCertificate } from './test-certificate.js';
export { handledMessages, idleSchedules, ownedRequests, testApp, topicsReadableBy, topicsReadBy } from './test-app.js';
