# syntax=docker/dockerfile:1
# `regard serve` in a container:
#
#     docker build -t regard .
#     docker run -p 5000:5000 -v "$PWD/models:/models:ro" -e REGARD_MODEL=/models/en-de regard
#
# Every flag of `regard serve` is a variable of the environment: --port is REGARD_PORT. `tools/check_container.sh` runs the
# commands of both stages without a Docker engine.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /source
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cargo build --profile dist --locked --bin regard && mkdir -p /out && cp target/dist/regard /out/regard && strip /out/regard

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --user-group --home-dir /models --shell /usr/sbin/nologin regard && mkdir -p /models /cache && chown regard:regard /models /cache
COPY --from=build /out/regard /usr/local/bin/regard
USER 10001:10001
ENV REGARD_HOST=0.0.0.0 REGARD_PORT=5000 REGARD_MODEL=/models REGARD_MODELS=/models HF_HOME=/cache
VOLUME ["/models", "/cache"]
WORKDIR /models
EXPOSE 5000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["regard", "serve", "--health-check"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["regard"]
CMD ["serve"]
