# The image with the tests of the jail and what they need: scripts/attacks-in-container.mjs
ARG IMAGE=sluice:dev
FROM node:24-trixie-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY component-packages component-packages
RUN npm ci --no-audit --no-fund && npm ci --prefix component-packages --no-audit --no-fund

FROM ${IMAGE}
# Without node_modules, dist and the prebuilt root of the image: tests compile their sources and build a root from them
WORKDIR /tests
COPY --from=dependencies /app/node_modules node_modules
COPY --from=dependencies /app/component-packages component-packages
COPY package.json jest.config.js ./
COPY scripts scripts
COPY test test
COPY libs libs
COPY apps apps
# the jail needs none of them, but jest looks there for tests
RUN mkdir packages
# No servers are needed: where these are set, none are started
ENV SLUICE_TEST_DATABASE_URL=none SLUICE_TEST_KAFKA_BROKERS=none NODE_ENV=test \
  NODE_OPTIONS="--experimental-vm-modules --disable-warning=ExperimentalWarning"
HEALTHCHECK NONE
ENTRYPOINT ["tini", "--", "node", "node_modules/jest/bin/jest.js", "--selectProjects=integration", "--testPathPatterns=apps/runtime/src/sandbox/attacks", "--cacheDirectory=/tmp/jest"]
