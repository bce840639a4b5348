// Fails on request.
export default {
  name: 'Moody',
  version: '1.0.0',
  run({ fail }) {
    if (fail) throw new TypeError(fail);
    this.$emit({ mood: 'good' });
  },
};
