export { type FreshDatabase, freshDatabase } from './fresh-database.js';
export { schemaDifferences } from './schema-differences.js';
export { makeTestCertificate } from './test-certificate.js';
