# The image with what the attacks on the sandbox need in addition: scripts/attack/containers.mjs
ARG IMAGE=sluice:dev
FROM node:24-trixie-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund

FROM ${IMAGE}
COPY --from=dependencies /app/node_modules node_modules
HEALTHCHECK NONE
ENTRYPOINT ["tini", "--", "node", "--disable-sigusr1", "dist/apps/runtime/src/sandbox/attacks/attack.js"]
