/** Starts a server on this machine. If its port is in use, the program ends with one line, which names the variable that sets the port. */
export function listen(server, { port, variable, greeting }) {
  server.once('error', ({ code, message }) => {
    const isInUse = code === 'EADDRINUSE';
    console.error(
      isInUse ? `port ${port} is in use: choose another one (export ${variable}=${port + 100}), and run this command again` : message,
    );
    process.exit(1);
  });
  server.listen(port, '127.0.0.1', () => console.log(`${greeting} at http://localhost:${server.address().port}/`));
}
