// Jest resolves 'fast-check' to this module, so that no property runs without the seed. Only an import by path bypasses that mapping.
import fc from '../../node_modules/fast-check/lib/fast-check.js';

fc.configureGlobal({ seed: Number(process.env.SLUICE_SEED) });

export default fc;
