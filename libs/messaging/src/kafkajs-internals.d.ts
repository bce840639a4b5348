/** Modules of kafkajs without types: the modules `kafkajs-….ts` declare the parts that they use of them. */
declare module 'kafkajs/src/*' {
  const exports: unknown;
  export default exports;
}
