/** Modules of kafkajs without types: `kafkajs-*.ts` declare the parts that they use. */
declare module 'kafkajs/src/*' {
  const exports: unknown;
  export default exports;
}
