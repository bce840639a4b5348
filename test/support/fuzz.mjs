// npm run fuzz [-- <seed>] — ten thousand requests made from the API's description.
const [, , seed] = process.argv;
process.env.SLUICE_FUZZ_REQUESTS ??= '10000';
if (seed) process.env.SLUICE_FUZZ_SEED = seed;
process.argv.splice(2, Infinity, 'test/fuzz');
await import('../../scripts/test.mjs');
