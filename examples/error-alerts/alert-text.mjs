// Listens to $errors, and emits a message for a chat: what failed, and in which line.
export default {
  name: 'Alert text',
  version: '1.0.0',
  run({ error, original_context: context }) {
    const line = /component\.[jt]s:(\d+)/.exec(error.stack)?.[1] ?? 'unknown';
    this.$emit({ text: `${context.source_id} failed in line ${line}: ${error.code}: ${error.message}` });
  },
};
