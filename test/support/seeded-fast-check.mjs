// Jest resolves 'fast-check' to this module, so that no property can forget the seed. Only a path gets around that mapping.
import fc from '../../node_modules/fast-check/lib/fast-check.js';

fc.configureGlobal({ seed: Number(process.env.SLUICE_SEED) });

export default fc;
