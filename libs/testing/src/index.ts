export { type FreshDatabase, freshDatabase } from './fresh-database.js';
export { makeTestCertificate } from './test-certificate.js';
