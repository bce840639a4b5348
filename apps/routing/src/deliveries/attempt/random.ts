/** From 0 to 1, like Math.random: what a simulation replaces to be the same each time. */
export type Random = () => number;
/** Injection token. */
export const RANDOM = Symbol('random');
