# An image with the commands of Reprise and nothing else.
#
#   docker build --build-arg VERSION=v0.1.0 -t reprise .            builds from source
#   make image-root && docker build --target prebuilt -t reprise .  copies binaries built outside; needs no base image

FROM scratch AS base
ENV PATH=/usr/local/bin \
    REPRISE_STORE_URL=sqlite:/data/reprise.db \
    REPRISE_LOG_FORMAT=json
# 8080 is the admin listener (web UI, metrics, health). It listens on loopback only unless admin.addr and admin.password are set.
EXPOSE 8080
CMD ["worker", "run"]

FROM base AS prebuilt
COPY --chown=65532:65532 bin/image/ /
USER 65532:65532
WORKDIR /data
VOLUME /data

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN make image-root DEST=/image VERSION=$VERSION

FROM base
COPY --from=build --chown=65532:65532 /image/ /
USER 65532:65532
WORKDIR /data
VOLUME /data
