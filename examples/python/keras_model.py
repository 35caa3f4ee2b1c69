"""Runs a model of Keras without TensorFlow's runtime: ``pip install keras tensorflow``."""

import keras
import numpy as np

import tfrt

model = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
# The same as model.export("digits"), and then tfrt.Model("digits").
ours = tfrt.from_keras(model)
print(ours)

images = np.random.default_rng(0).random((4, 28, 28, 1), np.float32)
(scores,) = ours(images).values()
np.testing.assert_allclose(scores, model(images), rtol=1e-4, atol=1e-6)
print("as Keras:", scores.argmax(axis=1))
