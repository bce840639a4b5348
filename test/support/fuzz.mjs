// npm run fuzz [-- <seed>] — ten thousand requests generated from the API's description, different each time unless a seed is given.
const [, , seed = String(Date.now() % 1_000_000)] = process.argv;
process.env.SLUICE_FUZZ_REQUESTS ??= '10000';
process.env.SLUICE_FUZZ_SEED = seed;
process.argv.splice(2, Infinity, 'test/fuzz');
await import('../../scripts/test.mjs');
