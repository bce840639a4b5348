/** Modules of kafkajs without types: `kafkajs-fixes.ts` declares what it uses of them. */
declare module 'kafkajs/src/*' {
  const exports: unknown;
  export default exports;
}
