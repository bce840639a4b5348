// Listens to a source of the component `github`, and emits one event per push to the branch.
export default {
  name: 'Pushes to main',
  version: '1.0.0',
  dedupe: 'unique',
  props: {
    branch: { type: 'string', label: 'Branch', default: 'main' },
  },
  run({ id, type, payload }) {
    if (type !== 'push' || payload.ref !== `refs/heads/${this.branch}`) return;
    const { repository, pusher, commits } = payload;
    const text = `${pusher.name} pushed ${commits.length} commit(s) to ${repository.full_name}: ${commits.at(-1).message}`;
    this.$emit({ text }, { id, summary: text });
  },
};
